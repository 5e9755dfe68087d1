#include "op/softmax_fwd.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "reference/independent_rows.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"
#include "reference/softmax_diagnosis.hpp"
#include "reference/softmax_lanes.hpp"
#include "reference/softmax_row_sums.hpp"
#include "reference/softmax_rules.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kElementsPerTask = 1 << 14;

/// All rows of x with one scale.
struct Problem {
  op::SoftmaxFwdParams p;
  const op::Operand* x;
  const op::Operand* mask;  ///< null without one
  double scale;

  [[nodiscard]] SoftmaxRow row(std::size_t index) const {
    const auto sq = static_cast<std::size_t>(p.sq);
    const auto sk = static_cast<std::size_t>(p.sk);
    const std::size_t i = index % sq;
    const std::size_t batch = index / sq / static_cast<std::size_t>(p.heads);
    const double* bytes = mask == nullptr ? nullptr : mask->data + (batch * sq + i) * sk;
    return softmax_rules(p.mask, p.masked_value, p.sq, p.sk, scale)
        .row_of(static_cast<std::int64_t>(i), x->data + index * sk, bytes);
  }
};

template <class Scalar, class Take>
void for_each_row(const Problem& problem, const Take& take) {
  const auto sk = static_cast<std::size_t>(problem.p.sk);
  const std::size_t rows = problem.x->elements() / sk;
  core::parallel_chunks(rows, std::max<std::size_t>(1, kElementsPerTask / sk),
                        [&](std::size_t, std::size_t begin, std::size_t end) {
                          std::vector<Scalar> y(sk);
                          for (std::size_t i = begin; i < end; ++i) {
                            const bool determined = softmax_row<Scalar>(problem.row(i), y);
                            take(i * sk, y, determined);
                          }
                        });
}

template <class Scalar>
void set_row(const Problem& problem, std::size_t index, std::vector<Scalar>& y, TrackedOutput& out) {
  const bool determined = softmax_row<Scalar>(problem.row(index), y);
  const std::size_t first = index * y.size();
  for (std::size_t j = 0; j < y.size(); ++j) {
    if (determined || std::is_same_v<Scalar, double>) {
      out.set(first + j, y[j]);
    } else {
      out.set_undetermined(first + j, tolerance::value_of(y[j]));
    }
  }
}

/// Several rows at a time, where that does. With double, without errors.
template <class Scalar>
void set_values(const Problem& problem, TrackedOutput& out) {
  const auto sk = static_cast<std::size_t>(problem.p.sk);
  const std::size_t rows = problem.x->elements() / sk, lanes = softmax_lanes();
  core::parallel_for((rows + lanes - 1) / lanes, [&](std::size_t group) {
    const std::size_t first = group * lanes, last = std::min(rows, first + lanes);
    std::vector<SoftmaxRow> together;
    for (std::size_t i = first; i < last; ++i) {
      together.push_back(problem.row(i));
    }
    const auto set = softmax_rows(together, sk, first * sk, out);
    std::vector<Scalar> y(sk);
    for (std::size_t i = first; i < last; ++i) {
      if (!set[i - first]) {
        set_row<Scalar>(problem, i, y, out);
      }
    }
  });
}

void set_ideal(const Problem& problem, TrackedOutput& out) {
  out.keep_ideal();
  for_each_row<double>(problem, [&out](std::size_t first, const std::vector<double>& y, bool) {
    for (std::size_t j = 0; j < y.size(); ++j) {
      out.set_ideal(first + j, y[j]);
    }
  });
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const double exact = static_cast<double>(static_cast<float>(p.scale));
  const double scale = p.scale_rounding == "as_implemented" ? core::round_to(exact, x.dtype) : exact;
  const op::Operand* mask = op::find_operand(request.inputs, "mask");
  TrackedOutput y("y", x.elements(), request.values_only);
  if (request.values_only) {
    set_values<double>({p, &x, mask, scale}, y);
  } else {
    set_values<Tracked>({p, &x, mask, scale}, y);
    if (scale != exact) {
      set_ideal({p, &x, mask, exact}, y);
      y.values().ideal_note = fmt::format("the scale {:.8g} is rounded to {} first, as TransformerEngine does: {:.8g}",
                                          exact, core::dtype_info(x.dtype).name, scale);
    }
  }
  op::Values result;
  result.outputs.push_back(std::move(y).take());
  return result;
}

void derive(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(*request.params);
  const auto elements = static_cast<std::size_t>(p.sq * p.sk);
  core::parallel_for(static_cast<std::size_t>(p.batches),
                     [&](std::size_t b) { fill_softmax_mask(values.subspan(b * elements, elements), p.sk); });
}

std::vector<op::Finding> findings(const op::FindingRequest& request) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(*request.params);
  return softmax_row_sums(request, "y", static_cast<std::size_t>(p.sk), op::operand_named(request.inputs, "x").dtype);
}

std::unique_ptr<op::RowFindings> row_findings(const op::Params& params, const op::Mode& mode) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(params);
  return softmax_row_sums("y", p.batches * p.heads * p.sq, static_cast<std::size_t>(p.sk), mode.first);
}

std::vector<op::Finding> diagnose(const op::FindingRequest& request) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(*request.params);
  return diagnose_softmax(request, "y", static_cast<std::size_t>(p.sk));
}

}  // namespace

op::Reference softmax_fwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.mistakes = &softmax_fwd_mistakes;
  reference.on_rows = &on_score_rows<op::SoftmaxFwdParams>;
  reference.version = "softmax_fwd-2";
  reference.derive = &derive;
  static constexpr std::array kGates = {
      op::OwnGate{"row sum", "a row's sum against 1, as far as the sum of the exponentials explains it"},
  };
  reference.findings = &findings;
  reference.row_findings = &row_findings;
  reference.gates = kGates;
  reference.diagnose = &diagnose;
  return reference;
}

}  // namespace numcheck::reference
