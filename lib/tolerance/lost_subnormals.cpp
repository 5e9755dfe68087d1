#include "tolerance/lost_subnormals.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tolerance/product_terms.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::int64_t kOutputs = 16;

/// The slope of e on y if every sum loses `loss` of its magnitude.
double slope_of_loss(const op::GemmParams& p, const op::Operand& a, const op::Operand& b, double loss) {
  if (p.m == 0 || p.n == 0) {
    return 0;
  }
  const std::int64_t outputs = std::min(kOutputs, std::max(p.m, p.n));
  double magnitudes = 0, squares = 0;
  for (std::int64_t s = 0; s < outputs; ++s) {
    const TermsOf row = row_of(p, a, middle_of(s, outputs, p.m));
    const TermsOf column = column_of(p, b, middle_of(s, outputs, p.n));
    double sum = 0;
    for (std::int64_t t = 0; t < p.k; ++t) {
      sum += row.at(t) * column.at(t);
    }
    magnitudes += std::fabs(sum);
    squares += sum * sum;
  }
  const double slope = loss * magnitudes / squares;
  return slope < 1 ? slope : 1;  // no more than all of y is lost; where all sums are zero there is no slope
}

}  // namespace

void add_lost_subnormals(const model::ModelRequest& request, const op::GemmParams& params,
                         const model::Arithmetic& arithmetic, double scale, model::ErrorModel& model) {
  if (arithmetic.kind != model::Arithmetic::Kind::tensor_core || params.k == 0) {
    return;
  }
  const double loss = std::ceil(static_cast<double>(params.k) / arithmetic.L) * 0x1p-150;
  model.var_absolute += std::pow(loss * std::max(1.0, scale), 2);
  if (request.first != nullptr && request.second != nullptr) {
    model.slope_slack += slope_of_loss(params, *request.first, *request.second, loss);
  }
}

}  // namespace numcheck::tolerance
