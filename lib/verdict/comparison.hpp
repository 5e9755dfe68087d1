// Comparing one output with the group's references, with a cache.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "machine/device.hpp"
#include "metric/compare.hpp"
#include "metric/wrong_elements.hpp"
#include "model/error_model.hpp"
#include "prepare/group.hpp"
#include "tolerance/judge.hpp"
#include "tolerance/vacuity.hpp"
#include "verdict/compared_port.hpp"
#include "verdict/last_pass.hpp"
#include "verdict/settled.hpp"
#include "verdict/streamed_values.hpp"
#include "verdict/wrong_formulas.hpp"

namespace numcheck::verdict {

/// Statistics and certificates of compared outputs, keyed by everything they depend on, so that algorithms and
/// environments that produce the same bits are compared only once.
class ComparisonCache {
 public:
  struct Entry {
    metric::Statistics statistics;
    tolerance::Certificate certificate;
    std::optional<metric::ErrorNorms> ideal;     ///< OutputResult::ideal
    std::optional<metric::ErrorNorms> judged;    ///< OutputResult::judged
    bool vanishes = false;                       ///< OutputResult::vanishes
    std::optional<metric::WrongElements> wrong;  ///< OutputResult::wrong
  };
  [[nodiscard]] std::shared_ptr<const Entry> find(const std::string& key) const;
  void store(const std::string& key, std::shared_ptr<const Entry> entry);

  /// Values of a last pass for what was passed on to it (LastPass::key), or of all passes for what one chose. Only the two
  /// stored last are kept: they are as large as the outputs in doubles.
  [[nodiscard]] std::shared_ptr<const op::Values> find_values(const std::string& key) const;
  void store_values(const std::string& key, std::shared_ptr<const op::Values> values);
  /// The same, computed if they are not there: by one caller, for which others wait.
  [[nodiscard]] std::shared_ptr<const op::Values> values_or(const std::string& key,
                                                            const std::function<op::Values()>& compute);
  /// The same of wrong formulas, all of which are kept: they are of few elements each.
  [[nodiscard]] std::shared_ptr<const WrongFormulas> formulas_or(const std::string& key,
                                                                 const std::function<WrongFormulas()>& compute);

 private:
  std::mutex computing_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Entry>> entries_;
  std::deque<std::pair<std::string, std::shared_ptr<const op::Values>>> values_;
  std::map<std::string, std::shared_ptr<const WrongFormulas>> formulas_;
};

/// What a run is judged against, besides the case itself.
struct EvaluationContext {
  prepare::Group* group = nullptr;
  const prepare::PreparedCase* prepared = nullptr;
  std::span<const worker::HostPort> host;  ///< parallel to its ports: inputs, and the outputs of the run
  const machine::Device* device = nullptr;
  model::MatrixArithmetic arithmetic = model::MatrixArithmetic::by_mode;  ///< of the backend that ran
  ComparisonCache* cache = nullptr;
  bool all_maps = false;  ///< OutputResult::picture also of outputs that pass
  /// No certificates, diagnoses and pictures, and no slow gates of an output that other gates find wrong.
  bool gates_only = false;
  std::shared_ptr<const LastPass> last_pass = {};                ///< of a case with several passes
  model::PrecisionClass judged = model::PrecisionClass::native;  ///< the class by which the run is judged
  /// The outputs for operands as the run converted them (see conversion.hpp), which then are what is expected of it.
  std::shared_ptr<const op::Values> converted = {};
  /// What is expected of large outputs, made while it is compared.
  std::shared_ptr<const StreamedValues> streamed = {};
  /// The outputs if overflows have decided what is right, of cases with one pass.
  std::shared_ptr<const SettledValues> settled = {};

  /// What the reference was given: of a last pass, with what the device's earlier passes left.
  [[nodiscard]] std::span<const op::Operand> inputs() const {
    if (last_pass == nullptr) {
      return prepared->rounding->operands;
    }
    return last_pass->inputs;
  }
};

/// Statistics and certificate of one output under a model, cached if the same bits were compared before.
[[nodiscard]] std::shared_ptr<const ComparisonCache::Entry> compare_output(const EvaluationContext& context,
                                                                           const ComparedPort& compared,
                                                                           const model::ErrorModel& model);

/// Whether a port is judged by the last pass's values for what the earlier ones left.
[[nodiscard]] bool judges_last_pass(const EvaluationContext& context, const op::Port& port);

/// The reference's outputs of the whole case, by which its findings are made.
[[nodiscard]] const op::Values& values_of_case(const EvaluationContext& context);

/// The reference's outputs that a port is judged by.
[[nodiscard]] const op::Values& expected_outputs(const EvaluationContext& context, const op::Port& port);

/// The reference values for a port. An amax port without values of its own gets those of the output whose maximum it
/// holds.
[[nodiscard]] const op::OutputValues& expected_values(const EvaluationContext& context, const op::Port& port);

/// For exact cases whose reference is only a sample: a linear check that covers every element.
[[nodiscard]] tolerance::Criterion check_whole_output(const EvaluationContext& context, const op::Port& port,
                                                      std::span<const std::byte> bytes);

}  // namespace numcheck::verdict
