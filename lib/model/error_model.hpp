// The error that correct arithmetic may make: deterministic bound B and predicted second moment V per element.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "data/pattern.hpp"
#include "model/declared_rounding.hpp"
#include "op/mode.hpp"
#include "op/reference.hpp"
#include "op/value.hpp"

namespace numcheck::model {

/// Precision class of the operands that ran, or of FP8 sums, as observed by bits (probes G6 and G3) or expected from the request.
enum class PrecisionClass {
  fp32,
  tf32_rne,
  tf32_truncated,
  bf16_inputs,
  fp8_promoted,  ///< sums of FP8 products are promoted to FP32 after 128 or fewer of them, or have more than 14 bits
  fp8_rarely_promoted,  ///< after more
  fp8_fast,             ///< never: 14 bits
  native,
  unknown
};

[[nodiscard]] const char* class_name(PrecisionClass c) noexcept;
/// The class of that name; nothing if no class has it.
[[nodiscard]] std::optional<PrecisionClass> class_named(std::string_view name) noexcept;

/// Correct FP32 results are multiples of no more than
///   value |y| + second sqrt(S2) + magnitude A + absolute,
/// because terms and partial sums are no larger and so many of their bits are kept. Before they are output, not even
/// operands of few bits leave more than `share` of the results with 10, 13 and 16 zeros at the end.
struct Spacing {
  double value = 0, second = 0, magnitude = 0, absolute = 0;
  std::array<double, 3> share{};
};

/// How FP32 operands were rounded before they were multiplied, as bits showed (probe G6).
struct Conversion {
  core::Dtype format = core::Dtype::tf32;
  core::Rounding rounding = core::Rounding::nearest_even;
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

/// "TF32, to nearest even".
[[nodiscard]] std::string describe(const Conversion& conversion);

/// What gelu, applied to a sum z last, adds to its errors: at most bound |z|.
struct GeluErrors {
  double bound = 0;
  double added = std::numeric_limits<double>::infinity();  ///< the largest magnitude of what z is besides the product
};

/// What of a product's B and V is its accumulator's own: addends are no part of its A and y. Set where that is far more than
/// what rounding the addends costs.
struct AddendErrors {
  double magnitude = 0;            ///< of bound_magnitude
  double value = 0, coherent = 0;  ///< of var_value and var_coherent
  double cancelled = 0;  ///< of var_magnitude, for sums whose mean addends may cancel: P, which is known, has it
  double gain = 1, square_gain = 1;  ///< by which the reference's A and S2 are larger than the sum's
};

/// Per element, with A = magnitude, S2 = deviation^2, y = value, before output rounding:
///   B = bound_magnitude A + bound_value |y| + bound_absolute
///   V = var_second S2 + var_value y^2 + var_magnitude A^2 + var_coherent (y^2 / A)^2 + var_absolute
/// Output rounding is added by the comparison, which knows the format. All in units of the unscaled output;
/// the comparison multiplies by output_scale if the output is quantised.
struct ErrorModel {
  double bound_magnitude = 0;
  double bound_value = 0;
  double bound_absolute = 0;
  double var_second = 0;
  double var_value = 0;
  double var_magnitude = 0;
  double var_absolute = 0;
  /// The effect of truncating products that share a sign: |y| / A is 1 for same-sign products and small for zero-mean
  /// ones.
  double var_coherent = 0;
  double slope_low = 0;       ///< most negative slope of e on y that an admissible schedule causes (<= 0)
  double slope_coherent = 0;  ///< like slope_low, per unit of the weighted mean of |y| / A
  double slope_slack = 0;     ///< slope of either sign that rounded factors and constant operands cause
  /// Slope of either sign, per unit of sqrt(sum w A^2 / sum w y^2): errors of a part of y that other parts cancel do
  /// not become smaller with y.
  double slope_magnitude = 0;
  /// The same, per unit of sqrt(sum S2 / sum y^2), weighted likewise.
  double slope_second = 0;
  /// Or of addends: errors s (y - c) with |c| <= slope_addend have slopes within s sqrt(sum w c^2 / sum w y^2) of s. The smaller
  /// of the two counts. Infinite: not known.
  double slope_addend = 0;
  double slope_absolute = 0;  ///< what all elements may lose alike below the smallest number, whatever their size
  double cancelled = 0;       ///< factor that turns A into the mean of a sum that other terms of y may cancel
  double kappa = 3;           ///< limit of the rms of e / sqrt(V)
  bool exact = false;         ///< exact leg: the output must equal RN(y) bit for bit
  std::string exact_because = "every partial sum is exact, so any order gives these bits";
  double output_scale = 1;
  core::Dtype output = core::Dtype::fp32;
  double reduction = 1;        ///< terms of one output's sum; the certificate's missing tail is a part of them
  bool rows_agree = false;     ///< the errors within a column are mostly one error, see Statistics::copies
  bool columns_agree = false;  ///< those within a row are
  /// The running sums of the elements of a column (of a row) are alike, so an excursion of theirs makes all errors larger.
  bool rows_walk_alike = false, columns_walk_alike = false;
  bool lines_share = false;  ///< the elements of a row, and those of a column, may share an error
  /// Rows, or columns, may share one: sums of terms of one sign are rounded on the same few numbers in all of them.
  bool sums_agree = false;
  /// Outputs per independent error besides those of a row or column, by which gate G3 enlarges its standard errors: heads
  /// that share keys have the same output where a single key has all the weight.
  double slope_copies = 1;
  /// Outputs per independent rounding, for gate G4: rows may be so alike that all are rounded in the same way.
  double rounding_copies = 1;
  /// Every element may carry the same error, so nothing averages out: only bounds on single elements judge.
  bool one_error = false;
  /// Elements share errors only within rows or columns, whose scatter shows it, and what all share is in the slope's slack,
  /// though element_errors say nothing of it.
  bool scatter_shows = false;
  /// Values smaller than their own error may all be lost in the same way: 1 + tanh(x) is 0 for every x below -9.
  bool lost_alike = false;
  /// From this A on partial sums may overflow: then non-finite outputs depend on the order of summation and are only
  /// counted; 0: in every output, because a factor overflows by itself.
  double overflow_magnitude = std::numeric_limits<double>::infinity();
  /// Of a y above it, A is the sum of the magnitudes of the terms whose sum is y: then (A + y) / 2 is that of the positive ones, and
  /// what does not reach overflow_magnitude cannot overflow. Relu leaves positive sums as they are, and gelu large ones.
  double sum_above = std::numeric_limits<double>::infinity();
  bool minus_infinity_is_nan = false;  ///< the epilogue makes NaN of it: gelu(-inf) = -inf * 0
  /// A and S2 are the sums of the magnitudes and of the squares of the terms of y, as of a product: errors can be
  /// compared with them. Otherwise A is what bounds the error.
  bool terms = false;
  double rounded_operands = 2;  ///< of such a product: how many operands a shorter format could not hold exactly
  double operand_limit = std::numeric_limits<double>::infinity();  ///< a larger |operand| may become infinite by itself
  double operand_least = 0;                                        ///< a smaller one may become zero
  double reach = 0;  ///< |a b| times this is at least 1 if sums of such products may overflow
  /// alpha is 0: where the product is not finite, it may be multiplied all the same, which makes NaN.
  bool zero_times_product = false;
  bool overflow_possible = false;       ///< an operand's infinity may meet one from an overflow and become NaN
  bool overflow_may_be_finite = false;  ///< the epilogue turns an infinity into a number (max(0, -inf) = 0)
  bool nan_may_become_zero = false;     ///< the declared NaN rule drops NaN (max(0, NaN) = 0)
  /// y = gelu(z), and the reference has z (op::OutputValues::argument): errors of z count by |gelu'|, which is next to 0 where
  /// gelu is flat, and gelu's own are these. bound_magnitude contains them, as |z| <= A; verdict::Expectation has A and S2 for
  /// each z.
  std::optional<GeluErrors> gelu;
  /// y has addends, and their values are known: verdict::Expectation has A and S2 without them.
  std::optional<AddendErrors> addends;
  /// y = max(0, z), and the reference has z: where z cannot be positive, y is 0 and nothing else.
  bool relu = false;
  std::optional<Spacing> spacing;  ///< of results in FP32; nothing if it is not known
  std::string source;              ///< "gemm/bf16 on sm_90: L=16 F=25 RZ, k=4096"
  /// For ops whose B and V are no such sums: computes B and sqrt(V) of every element of the port from the reference's
  /// values. They are then A and sqrt(S2) above. Empty: the reference's own are.
  std::function<void(const op::Values& values, std::span<float> bound, std::span<float> deviation)> element_errors;
  /// Of such ops, op::OutputValues::terms; may be empty. How many terms there are is `reduction`.
  std::function<void(const op::Values& values, std::span<float> terms)> element_terms;
  /// What slope_slack lacks and the reference's values tell; may be empty.
  std::function<double(const op::Values& values)> shared_slope;
  /// rounding_copies, where the reference's values tell of more; may be empty.
  std::function<double(const op::Values& values)> shared_roundings;
  /// Of an output of heads whose rows have errors of their own: what each row of channels may be off by as a whole besides,
  /// as a part of itself, in the order of the elements. Blocks of rows are judged only if there is such a function.
  std::function<std::vector<float>(const op::Values& values)> row_slopes;
};

/// How a backend multiplies matrices.
enum class MatrixArithmetic {
  by_mode,              ///< as the mode asks, in any admissible schedule
  by_mode_alpha_first,  ///< the same, but some algorithms scale an operand by alpha before they multiply (cuBLASLt)
  fp32_chain,           ///< FP32 fused multiply-adds in the order of k, whatever the mode
};

/// What a model is requested for.
struct ModelRequest {
  const op::Params* params = nullptr;
  const op::Mode* mode = nullptr;
  PrecisionClass expected = PrecisionClass::native;
  int sm = 90;  ///< 10 * major + minor of the device that ran
  MatrixArithmetic arithmetic = MatrixArithmetic::by_mode;
  core::Dtype output = core::Dtype::fp32;  ///< format of the port in question
  bool exact_leg = false;
  double output_scale = 1;
  double first_scale = 1;  ///< scale_inv of the operands
  double second_scale = 1;
  double first_max = 0;  ///< largest finite |code| of the operands
  double second_max = 0;
  double first_min = 0;  ///< smallest |code| that is not 0; 0: not known
  double second_min = 0;
  data::Pattern first_pattern;
  data::Pattern second_pattern;
  bool others_ordered = false;         ///< a further operand is constant or structured (data::Order)
  std::vector<double> others_max;      ///< largest finite |code| of each further operand
  const op::Operand* first = nullptr;  ///< the operands themselves; null if only their patterns are known
  const op::Operand* second = nullptr;
  std::span<const op::Operand> operands;  ///< all of the case, rounded
  bool constant_inputs = false;           ///< every drawn input is a single repeated number
  bool converted = false;      ///< y is the result for FP32 operands as the run converted them, not as they are stored
  AttentionRounding rounding;  ///< what the model of attention allows besides; nothing: what the mode promises
};

/// An op's function that makes the model of one of its output ports.
using ErrorModelFn = ErrorModel (*)(const ModelRequest&, std::string_view port);

}  // namespace numcheck::model
