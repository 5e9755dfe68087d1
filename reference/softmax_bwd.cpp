#include "op/softmax_bwd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/parallel.hpp"
#include "reference/independent_rows.hpp"
#include "reference/mistakes.hpp"
#include "reference/open_elements.hpp"
#include "reference/references.hpp"
#include "reference/softmax_rules.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kElementsPerTask = 1 << 14;

/// An input that a device may flush to zero as it reads it: TransformerEngine compiles softmax with fast math.
double as_read(double x, const double& /*scalar*/) {
  return x;
}
Tracked as_read(double x, const Tracked& /*scalar*/) {
  const bool subnormal = std::fabs(x) < tolerance::kFlush;
  return subnormal ? Tracked(x, std::fabs(x), x * x) : Tracked(x);
}

double flushable(double x) {
  return x;
}
Tracked flushable(const Tracked& x) {
  return tolerance::function_of(x, x.y, 1, 0, tolerance::kFlush);
}

template <class Scalar>
struct GradientRow {
  std::vector<Scalar> y;
  std::vector<Scalar> product;  ///< dy y

  explicit GradientRow(std::size_t size) : y(size), product(size) {}

  /// dx of the first `columns` elements; the others are not part of the row, and zero. If the row's sum is not finite,
  /// they are not checked: TransformerEngine reads them too, and multiplies their zeros by that sum. Nor are elements
  /// checked whose y may be flushed to zero and is multiplied by an infinity. Open are those where dy - sum or, multiplied
  /// first, its product with the scale may overflow.
  void compute(const double* dy, const double* given, std::size_t columns, double scale, std::size_t first,
               TrackedOutput& dx, OpenElements& open) {
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    constexpr double kLargest = 0x1p127;  // leaves room for the errors of the sum
    const double factor = std::max(1.0, std::fabs(scale));
    tolerance::Sum<Scalar> sum;
    double absolute = 0;  // sum of |dy y|
    bool unknown = false;
    for (std::size_t j = 0; j < columns; ++j) {
      y[j] = as_read(given[j], Scalar());
      const Scalar gradient = as_read(dy[j], Scalar());
      product[j] = flushable(gradient * y[j]);
      unknown = unknown || tolerance::indeterminate(gradient, y[j]);
      sum.add(product[j]);
      absolute += std::fabs(tolerance::value_of(product[j]));
    }
    const Scalar total = sum.result();
    for (std::size_t j = 0; j < columns; ++j) {
      const Scalar value = flushable(Scalar(scale) * (product[j] - flushable(y[j] * total)));
      if (unknown || tolerance::indeterminate(y[j], total)) {
        dx.set(first + j, 0, kUnknown, kUnknown);
      } else {
        dx.set(first + j, value);
        const double reach = (std::fabs(dy[j]) + std::fabs(tolerance::value_of(total))) * factor;
        if (std::isfinite(reach) && reach > kLargest) {
          open.note(first + j);
        }
      }
      dx.set_terms(first + j, std::fabs(scale) * (std::fabs(tolerance::value_of(product[j])) +
                                                  std::fabs(tolerance::value_of(y[j])) * absolute));
    }
    const double yardstick = std::isfinite(tolerance::value_of(total)) ? 0 : kUnknown;
    for (std::size_t j = columns; j < y.size(); ++j) {
      dx.set(first + j, 0, yardstick, yardstick);
    }
  }
};

template <class Scalar>
void compute_all(const op::SoftmaxBwdParams& p, const op::Operand& dy, const op::Operand& y, TrackedOutput& dx) {
  const auto sq = static_cast<std::size_t>(p.sq);
  const auto sk = static_cast<std::size_t>(p.sk);
  const op::SoftmaxMask mask = op::softmax_mask(p.mask);
  const double scale = static_cast<double>(static_cast<float>(p.scale));
  OpenElements open;
  core::parallel_chunks(dy.elements() / sk, std::max<std::size_t>(1, kElementsPerTask / sk),
                        [&](std::size_t, std::size_t begin, std::size_t end) {
                          GradientRow<Scalar> row(sk);
                          for (std::size_t i = begin; i < end; ++i) {
                            const auto in_matrix = static_cast<std::int64_t>(i % sq);
                            const auto columns =
                                static_cast<std::size_t>(op::columns_before_diagonal(mask, in_matrix, p.sq, p.sk));
                            row.compute(dy.data + i * sk, y.data + i * sk, columns, scale, i * sk, dx, open);
                          }
                        });
  open.leave(dx);
}

op::Values values(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::SoftmaxBwdParams>(*request.params);
  const op::Operand& dy = op::operand_named(request.inputs, "dy");
  const op::Operand& y = op::operand_named(request.inputs, "y");
  TrackedOutput dx("dx", dy.elements(), request.values_only);
  dx.keep_terms(static_cast<std::size_t>(p.sk) + 1);
  if (request.values_only) {
    compute_all<double>(p, dy, y, dx);
  } else {
    compute_all<Tracked>(p, dy, y, dx);
  }
  op::Values result;
  result.outputs.push_back(std::move(dx).take());
  return result;
}

/// y: the softmax of its own draws; an arbitrary mask comes from the same draws.
void derive(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::SoftmaxBwdParams>(*request.params);
  const auto sk = static_cast<std::size_t>(p.sk);
  const auto elements = static_cast<std::size_t>(p.sq) * sk;
  const double scale = static_cast<double>(static_cast<float>(p.scale));
  const SoftmaxRules rules = softmax_rules(p.mask, p.masked_value, p.sq, p.sk, scale);
  core::parallel_for(static_cast<std::size_t>(p.batches * p.heads), [&](std::size_t matrix) {
    const std::span<double> scores = values.subspan(matrix * elements, elements);
    std::vector<double> mask;
    if (rules.mask == op::SoftmaxMask::arbitrary) {
      mask.assign(scores.begin(), scores.end());
      fill_softmax_mask(mask, p.sk);
    }
    std::vector<double> y(sk);
    for (std::size_t i = 0; i < static_cast<std::size_t>(p.sq); ++i) {
      const std::span<double> row = scores.subspan(i * sk, sk);
      const double* bytes = mask.empty() ? nullptr : mask.data() + i * sk;
      (void)softmax_row<double>(rules.row_of(static_cast<std::int64_t>(i), row.data(), bytes), y);
      std::ranges::copy(y, row.begin());
    }
  });
}

}  // namespace

op::Reference softmax_bwd_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.settle = &settle_overflows;
  reference.mistakes = &softmax_bwd_mistakes;
  reference.on_rows = &on_score_rows<op::SoftmaxBwdParams>;
  reference.version = "softmax_bwd-5";
  reference.derive = &derive;
  return reference;
}

}  // namespace numcheck::reference
