// Ways in which outputs may have come about: each row of the catalogue looks at the tensors and says what to try.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

struct Hypothesis {
  std::string name;  ///< stable, for programs: "operands_in_tf32", "epsilon=1e-06"
  /// Hypotheses of one family say the same with other numbers: once one of them explains the output, the others are not
  /// tried. Empty: a family of its own.
  std::string family;
  std::string cause;   ///< one sentence
  std::string remedy;  ///< what to do about it, a sentence or two
  Trial trial;
  double least_spread = 0;  ///< rms of errors by the predicted one, below which it is too wide to say anything
  bool is_fitted = false;   ///< to a number that nobody would have typed: causes without such a number come first
  /// A number that people choose without looking at the tensors (1 / sqrt(d), 1e-6): of two causes it is the likelier first
  /// one, because those that are fitted make up for the other one as well.
  bool is_usual = false;
  std::string shared_cause =
      {};  ///< `cause` without what is of this case only, so that failures can be grouped; may be empty
  bool is_measured =
      false;  ///< its number was chosen by what the output looks like, typed or not: it predicted no bits
};

/// What hypotheses are made from, besides the tensors: what the reference expects as declared, and what is there.
struct Evidence {
  const Subject& subject;
  std::string_view port;                   ///< the output to be explained
  const op::OutputValues& values;          ///< of it
  std::span<const double> delivered;       ///< of it, decoded; parallel to values.value
  std::span<const std::uint8_t> is_wrong;  ///< which of them are wrong by themselves
  const op::Sample& sample;                ///< which elements they are
  std::span<const double> possible = {};   ///< ElementFacts::possible
  bool is_of_blocks = false;               ///< Diagnosis::is_of_blocks
};

/// The output to be explained, as declared.
[[nodiscard]] op::Port port_of(const Evidence& evidence);

/// Trial::then that changes what is expected of that output, and its yardsticks (null if it has none).
using ChangeOutput = std::function<void(op::OutputValues&, op::OutputYardsticks*)>;
[[nodiscard]] decltype(Trial::then) change_of(const Evidence& evidence, ChangeOutput change);

/// sum d y / sum y^2 over finite elements, d the delivered and y the expected ones; nothing where the square of the cosine between
/// the two is below `least`, or there are none.
[[nodiscard]] std::optional<double> factor_of_output(const Evidence& evidence, double least);

/// Expects another number of an element, which errs in proportion if it is larger.
void expect_instead(op::OutputValues& output, std::size_t i, double y);

/// The family of slices of k whose sums are rounded to the output's format, and the remedy against them.
inline constexpr std::string_view kRoundedSlices = "slices_rounded";
inline constexpr std::string_view kForbidSlices =
    "Forbid it: PyTorch torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction and "
    "allow_fp16_reduced_precision_reduction = False; cuBLASLt: no split-K reduction in the output's type.";

/// Lets an element err by one more rounding of that format.
void allow_rounding(op::OutputValues& output, std::size_t i, core::Dtype dtype);

/// The same, number by number.
[[nodiscard]] decltype(Trial::then) change_each(const Evidence& evidence, std::function<double(double)> change);

/// Families of hypotheses that say where elements are wrong, and not why; and that the whole output is one number.
inline constexpr std::string_view kPlaces = "places", kOneNumber = "one number";

/// Rows of a stage are tried if those of earlier ones do not explain the output.
enum class Stage {
  first,
  simulated,    ///< what a simulated device can be made to do
  last_resort,  ///< says where, and not why
};

struct CatalogueRow {
  std::string_view name;  ///< of its hypotheses, or what their names begin with
  std::string_view doc;
  std::vector<Hypothesis> (*make)(const Evidence&);
  Stage stage = Stage::first;
  bool needs_all = false;  ///< looks at where elements are, so that a part of the output does not do
};

/// In the order in which equally good explanations are named: simple and frequent ones first.
[[nodiscard]] std::span<const CatalogueRow> catalogue();

// The rows, by what they change.
[[nodiscard]] std::span<const CatalogueRow> accumulation_rows();
[[nodiscard]] std::span<const CatalogueRow> alibi_rows();
[[nodiscard]] std::span<const CatalogueRow> attention_mask_rows();
[[nodiscard]] std::span<const CatalogueRow> attention_product_rows();
[[nodiscard]] std::span<const CatalogueRow> attention_window_rows();
[[nodiscard]] std::span<const CatalogueRow> changed_input_rows();
[[nodiscard]] std::span<const CatalogueRow> misapplied_rows();
[[nodiscard]] std::span<const CatalogueRow> eager_rows();
[[nodiscard]] std::span<const CatalogueRow> operand_rows();
[[nodiscard]] std::span<const CatalogueRow> formula_rows();
[[nodiscard]] std::span<const CatalogueRow> fused_function_rows();
[[nodiscard]] std::span<const CatalogueRow> output_rows();
[[nodiscard]] std::span<const CatalogueRow> rearranged_rows();
[[nodiscard]] std::span<const CatalogueRow> scale_rows();
[[nodiscard]] std::span<const CatalogueRow> fitted_scale_rows();
[[nodiscard]] std::span<const CatalogueRow> sum_rows();
[[nodiscard]] std::span<const CatalogueRow> norm_rows();
[[nodiscard]] std::span<const CatalogueRow> keys_left_out_rows();
[[nodiscard]] std::span<const CatalogueRow> added_line_rows();
[[nodiscard]] std::span<const CatalogueRow> scaled_line_rows();
[[nodiscard]] std::span<const CatalogueRow> moved_line_rows();
[[nodiscard]] std::span<const CatalogueRow> hadamard_operand_rows();
[[nodiscard]] std::span<const CatalogueRow> quantised_product_rows();
[[nodiscard]] std::span<const CatalogueRow> rope_angle_rows();
[[nodiscard]] std::span<const CatalogueRow> simulated_rows();
[[nodiscard]] std::span<const CatalogueRow> statistics_rows();
[[nodiscard]] std::span<const CatalogueRow> wrong_place_rows();

}  // namespace numcheck::diagnose
