// References of ops whose rows do not know of each other, made a few rows at a time while they are compared.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "metric/row_source.hpp"
#include "op/reference.hpp"
#include "prepare/group.hpp"

namespace numcheck::verdict {

struct EvaluationContext;

/// The rows of a case's main output; what else its rows have (statistics of a norm), or all share (amax), is kept, and findings are made of them as they
/// pass. Throws metric::NeedsAllRows where a row has what only the whole output shows: elements that overflow in one order, or
/// values without the op's own roundings.
class StreamedValues : public metric::RowSource {
 public:
  explicit StreamedValues(const EvaluationContext& context);

  [[nodiscard]] metric::ExpectedRows rows(std::int64_t first, std::int64_t count) const override;
  [[nodiscard]] metric::ExpectedRows picked(std::span<const std::int64_t> rows) const override;
  [[nodiscard]] std::int64_t rows_at_a_time() const override;
  [[nodiscard]] bool has_terms() const override;
  [[nodiscard]] bool has_unrounded() const override { return unrounded_ != nullptr; }

  [[nodiscard]] const op::Port& main() const { return *main_; }
  /// All outputs but the main one, of which these are the first rows. Complete after a pass.
  [[nodiscard]] const op::Values& values() const { return values_; }
  /// The same on the unrounded inputs; empty if these are the inputs.
  [[nodiscard]] const op::Values& total() const { return total_; }
  /// After a pass.
  [[nodiscard]] std::vector<op::Finding> findings() const;

 private:
  [[nodiscard]] op::Values values_of(std::vector<op::Operand> rows, std::int64_t count, bool values_only) const;
  [[nodiscard]] const op::OutputValues& main_of(const op::Values& values) const;
  void keep(const op::Values& rows, std::int64_t first, op::Values& all) const;
  void find(const std::vector<op::Operand>& inputs, const op::Values& rows, std::int64_t first,
            std::int64_t count) const;

  const EvaluationContext& context_;
  const op::Port* main_;
  const prepare::RowOperands* stored_;
  const prepare::RowOperands* unrounded_;  ///< null if these are the same
  std::unique_ptr<op::RowFindings> findings_;
  mutable op::Values values_, total_;  ///< rows are written by the threads that make them
  mutable std::mutex mutex_;           ///< of what all rows share
};

/// Null if the case is small, or its op or what is asked of it needs whole outputs.
[[nodiscard]] std::shared_ptr<const StreamedValues> streamed_values(const EvaluationContext& context);

}  // namespace numcheck::verdict
