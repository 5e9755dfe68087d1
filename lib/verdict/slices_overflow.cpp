#include "verdict/slices_overflow.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "op/gemm.hpp"
#include "op/known_cause.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::verdict {
namespace {

/// The products of the output's elements, one after the other.
class Products {
 public:
  explicit Products(const EvaluationContext& context)
      : p_(op::from_params<op::GemmParams>(context.prepared->c->params)),
        a_(op::operand_named(context.prepared->rounding->operands, "a").data),
        b_(op::operand_named(context.prepared->rounding->operands, "b").data) {}

  /// The largest magnitude of a sum of neighbouring products: of some range of k.
  [[nodiscard]] double largest_range(std::int64_t element) const {
    const std::int64_t batch = element / (p_.m * p_.n), row = element / p_.n % p_.m, column = element % p_.n;
    const double* a = a_ + batch * p_.m * p_.k + (p_.trans_a ? row : row * p_.k);
    const double* b = b_ + batch * p_.k * p_.n + (p_.trans_b ? column * p_.k : column);
    const std::int64_t a_step = p_.trans_a ? p_.m : 1, b_step = p_.trans_b ? 1 : p_.n;
    double sum = 0, least = 0, most = 0;
    for (std::int64_t t = 0; t < p_.k; ++t) {
      sum += a[t * a_step] * b[t * b_step];
      least = std::min(least, sum);
      most = std::max(most, sum);
    }
    return most - least;
  }

 private:
  op::GemmParams p_;
  const double *a_, *b_;
};

/// Whether every element that is NaN or infinite, of some of them, has a range of k whose sum is beyond the format: a slice is
/// one. `scale` may be multiplied by before or after.
bool may_all_overflow(const EvaluationContext& context, const ComparedPort& compared, double scale) {
  constexpr std::size_t kMost = 1024;
  constexpr double kMargin = 0.99;  // of roundings
  const core::DtypeInfo& format = core::dtype_info(compared.port().dtype);
  const Products products(context);
  const op::Sample& sample = context.group->sample;
  const std::span<const double> expected = expected_values(context, compared.port()).value.span();
  const std::size_t stride = 1 + expected.size() / (std::size_t{1} << 20);
  std::size_t seen = 0;
  for (std::size_t at = 0; at < expected.size() && seen < kMost; at += stride) {
    const std::int64_t element = sample.all() ? static_cast<std::int64_t>(at) : sample.indices[at];
    const double got = core::decode(compared.bits_at(static_cast<std::size_t>(element)), compared.port().dtype);
    if (std::isfinite(got) || (std::isinf(got) && std::fabs(expected[at]) > format.max_finite)) {
      continue;
    }
    ++seen;
    if (!(products.largest_range(element) * std::max(1.0, scale) >= kMargin * format.max_finite)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool slices_overflow(const EvaluationContext& context, const ComparedPort& compared, const tolerance::RunFacts& facts,
                     const model::ErrorModel& model) {
  if (compared.port().dtype != core::Dtype::fp16) {
    return false;
  }
  double scale = std::abs(op::from_params<op::GemmParams>(context.prepared->c->params).alpha);
  for (const std::string_view port : {"a", "b"}) {
    scale *= op::operand_named(context.prepared->rounding->operands, port).scale;
  }
  const model::ErrorModel overflowing = tolerance::with_overflowing_slices(model, scale);
  const auto entry = compare_output(context, compared, overflowing);
  const auto criteria = tolerance::judge(entry->statistics, overflowing, facts, context.prepared->c->tolerance);
  return std::ranges::all_of(criteria, &tolerance::Criterion::ok) && may_all_overflow(context, compared, scale);
}

op::Finding slices_overflow_finding(std::string_view port, int slices) {
  op::Finding finding;
  finding.name = op::kSlicesOverflow.name;
  finding.port = port;
  finding.measured = 1;
  finding.cause = "sums of slices of k overflow in fp16";
  finding.text = fmt::format("{}: {} slices are added in that format, as the library declares", finding.cause, slices);
  finding.about = op::Finding::About::pattern;
  return finding;
}

}  // namespace numcheck::verdict
