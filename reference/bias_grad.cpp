#include "op/bias_grad.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "reference/activation_declared.hpp"
#include "reference/activation_settle.hpp"
#include "reference/mistakes.hpp"
#include "reference/mxfp8.hpp"
#include "reference/references.hpp"
#include "reference/repeated_terms.hpp"
#include "reference/tracked_output.hpp"
#include "reference/transposed_codes.hpp"

namespace numcheck::reference {
namespace {

using tolerance::Sum;

/// Few long columns are shared out one by one.
std::size_t columns_per_task(std::size_t hidden) {
  constexpr std::size_t kMost = 32;
  return std::clamp<std::size_t>(hidden / static_cast<std::size_t>(core::thread_count()), 1, kMost);
}

/// g of one element: the exact value with the error of the declared arithmetic.
Tracked term(std::optional<op::Activation> fused, double dy, double x, bool values_only) {
  if (!fused.has_value()) {
    return {dy};
  }
  Tracked g = exact_derivative(*fused, x, {}) * dy;
  if (!values_only) {
    const Tracked result = declared::gradient<Tracked>(*fused, x, dy, {});
    g = {g.y, result.b, result.v};
  }
  if (tame(dy, x)) {
    return g;
  }
  const Tracked slope = values_only ? Tracked() : declared::derivative<Tracked>(*fused, x, {});
  return settle(g.y, {slope, g, declared::gradient<float>(*fused, x, dy, {})});
}

/// The sum of one column. Partial sums that overflow FP32 in one order need not do so in another.
class Column {
 public:
  /// `function`: the activation's derivative at x in FP32 arithmetic.
  void add(const Tracked& g, double dy, double x, float function) {
    if (std::isfinite(g.y) && std::isnan(g.b)) {
      unknown_ = true;
    } else if (std::isfinite(g.y)) {
      sum_.add(g);
      repeated_.add(x, function, dy, g);
      absolute_ += std::fabs(g.y);
    } else {
      infinities_ += g.y;
      special_ = true;
    }
  }

  void store(TrackedOutput& dbias, std::size_t j) const {
    constexpr double kLargest = std::numeric_limits<float>::max();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const Tracked sum = sum_.result();
    const bool may_overflow = unknown_ || absolute_ + sum.b > kLargest;
    dbias.set_terms(j, absolute_);
    if (std::isnan(infinities_)) {
      dbias.set(j, kNan, kNan, kNan);
    } else if (may_overflow) {
      // A NaN yardstick means that the element is not checked.
      dbias.set(j, special_ ? 0 : sum.y, kNan, kNan);
    } else {
      dbias.set(j, special_ ? infinities_ : sum.y, sum.b, sum.v + repeated_.excess_variance());
    }
  }

 private:
  Sum<Tracked> sum_;
  RepeatedTerms repeated_;
  double absolute_ = 0;
  double infinities_ = 0;
  bool special_ = false;
  bool unknown_ = false;
};

/// rows x cols.
template <class T>
core::Buffer<T> transposed(const core::Buffer<T>& from, std::size_t rows, std::size_t cols) {
  core::Buffer<T> to(from.size());
  for (std::size_t i = 0; i < (from.empty() ? 0 : rows); ++i) {
    for (std::size_t j = 0; j < cols; ++j) {
      to[j * rows + i] = from[i * cols + j];
    }
  }
  return to;
}

/// dx_t, whose numbers and errors are those of dx.
op::OutputValues transpose_of(const op::OutputValues& dx, std::size_t rows, std::size_t hidden) {
  op::OutputValues dx_t;
  dx_t.port = "dx_t";
  dx_t.value = transposed(dx.value, rows, hidden);
  dx_t.magnitude = transposed(dx.magnitude, rows, hidden);
  dx_t.deviation = transposed(dx.deviation, rows, hidden);
  return dx_t;
}

std::vector<op::Finding> findings(const op::FindingRequest& request) {
  const auto hidden = static_cast<std::size_t>(op::from_params<op::BiasGradParams>(*request.params).hidden);
  return judge_transpose(request, "dx", "dx_t", hidden);
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::BiasGradParams>(*request.params);
  const op::Operand& dy = op::operand_named(request.inputs, "dy");
  const op::Operand* x = op::find_operand(request.inputs, "x");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const auto rows = static_cast<std::size_t>(p.rows);
  std::optional<op::Activation> fused;
  if (x != nullptr) {
    fused = op::activation_kind(p.fused).function;
  }
  const bool copies = x != nullptr && all_copies(x->data, x->elements());
  const bool has_dx = p.has_dx();
  TrackedOutput dx("dx", has_dx ? dy.elements() : 0, request.values_only);
  TrackedOutput dbias("dbias", hidden, request.values_only);
  dbias.keep_terms(rows);
  core::parallel_chunks(hidden, columns_per_task(hidden), [&](std::size_t, std::size_t begin, std::size_t end) {
    std::vector<Column> columns(end - begin);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = begin; j < end; ++j) {
        const std::size_t at = i * hidden + j;
        const double at_x = x == nullptr ? 0 : x->data[at];
        const Tracked g = term(fused, dy.data[at], at_x, request.values_only);
        const bool watched = fused.has_value() && !request.values_only;
        columns[j - begin].add(g, dy.data[at], at_x, watched ? declared::derivative<float>(*fused, at_x, {}) : 1.0F);
        if (has_dx) {
          dx.set(at, g.y, g.b, copies ? variance_of_copies(g) : g.v);
        }
      }
    }
    for (std::size_t j = begin; j < end; ++j) {
      columns[j - begin].store(dbias, j);
    }
  });
  op::Values result;
  if (op::is_mxfp8(p.output)) {
    result = mxfp8_outputs(std::move(dx).take(),
                           {op::kMxfp8Dx, p.rows, p.hidden, op::mxfp8_codes(p.output), dy.dtype, p.layout});
  } else if (has_dx) {
    result.outputs.push_back(std::move(dx).take());
  }
  if (p.has_transpose()) {
    result.outputs.push_back(transpose_of(result.outputs.front(), rows, hidden));
  }
  dbias.values().reduction = std::max(1.0, static_cast<double>(p.rows));
  result.outputs.push_back(std::move(dbias).take());
  return result;
}

}  // namespace

op::Reference bias_grad_reference() {
  static constexpr std::array kGates{kTransposedCodes};
  op::Reference reference;
  reference.values = &values;
  reference.version = "bias_grad-4";
  reference.mistakes = &bias_grad_mistakes;
  reference.findings = &findings;
  reference.gates = kGates;
  return reference;
}

}  // namespace numcheck::reference
