#include "verdict/slices_overflow.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "op/known_cause.hpp"
#include "tolerance/output_reduction.hpp"

namespace numcheck::verdict {
namespace {

/// The products of the output's elements, one after the other; of a group, those of its product.
class Products {
 public:
  Products(const op::GemmParams& params, std::span<const op::Operand> operands)
      : p_(params),
        a_(op::operand_named(operands, "a").data),
        b_(op::operand_named(operands, "b").data),
        scale_(op::scale_of_sums(params, operands)) {}

  [[nodiscard]] std::int64_t k() const noexcept { return p_.k; }
  /// By which sums of products are multiplied, but for its sign.
  [[nodiscard]] double scale() const noexcept { return std::fabs(scale_); }

  struct Ranges {
    double up = 0,
           down = 0;  ///< the largest sum of neighbouring products, and the largest with a minus sign, times that sign
  };
  /// Of some range of k each; the sign of the scale included.
  [[nodiscard]] Ranges largest_ranges(std::int64_t element) const {
    const std::int64_t batch = element / (p_.m * p_.n), row = element / p_.n % p_.m, column = element % p_.n;
    const double* a = a_ + batch * p_.m * p_.k + (p_.trans_a ? row : row * p_.k);
    const double* b = b_ + batch * p_.k * p_.n + (p_.trans_b ? column * p_.k : column);
    const std::int64_t a_step = p_.trans_a ? p_.m : 1, b_step = p_.trans_b ? 1 : p_.n;
    double sum = 0, least = 0, most = 0;
    Ranges ranges;
    for (std::int64_t t = 0; t < p_.k; ++t) {
      sum += std::copysign(1.0, scale_) * a[t * a_step] * b[t * b_step];
      ranges.up = std::max(ranges.up, sum - least);
      ranges.down = std::max(ranges.down, most - sum);
      least = std::min(least, sum);
      most = std::max(most, sum);
    }
    return ranges;
  }

 private:
  op::GemmParams p_;
  const double *a_, *b_;
  double scale_;
};

enum class Needed : std::uint8_t { nothing, up, down, both };

/// In which directions slices have overflowed that leave that: relu makes zero of NaN and of -infinity, gelu NaN of the latter.
Needed needed_for(double got, double expected, double largest, std::string_view epilogue) {
  if (got == 0 && expected > 0 && epilogue == "relu") {
    return Needed::down;
  }
  if (std::isnan(expected)) {
    return Needed::nothing;
  }
  if (std::isnan(got)) {
    return epilogue == "gelu" ? Needed::down : Needed::both;
  }
  if (std::isinf(got) && !(std::fabs(expected) > largest && std::signbit(got) == std::signbit(expected))) {
    return got > 0 ? Needed::up : Needed::down;
  }
  return Needed::nothing;
}

/// Whether every element that is NaN or infinite, or that relu may have made zero of that, has a range of k whose sum is beyond
/// the format in that direction: a slice is one. Looks at some of them. The scale may be multiplied by before or after.
bool may_all_overflow(const EvaluationContext& context, const ComparedPort& compared, const Products& products,
                      std::string_view epilogue, int slices) {
  constexpr std::int64_t kFewest = 1024, kMostProducts = std::int64_t{1} << 27;  // zeros, and others
  constexpr double kMargin = 0.99;                                               // of roundings
  const core::DtypeInfo& format = core::dtype_info(compared.port().dtype);
  const op::Sample& sample = context.group->sample;
  const std::span<const double> expected = expected_values(context, compared.port()).value.span();
  const std::size_t stride = 1 + expected.size() / (std::size_t{1} << 20);
  const std::int64_t most = std::max(kFewest, kMostProducts / std::max<std::int64_t>(1, products.k()));
  std::array<std::int64_t, 2> seen = {};
  for (std::size_t at = 0; at < expected.size(); at += stride) {
    const std::int64_t element = sample.all() ? static_cast<std::int64_t>(at) : sample.indices[at];
    const double got = core::decode(compared.bits_at(static_cast<std::size_t>(element)), compared.port().dtype);
    const Needed needed = needed_for(got, expected[at], format.max_finite, epilogue);
    if (needed == Needed::nothing || ++seen[got == 0 ? 0 : 1] > most) {
      continue;
    }
    const Products::Ranges ranges = products.largest_ranges(element);
    if (got == 0 && expected[at] <= 2 * slices * format.unit_roundoff * (ranges.up + ranges.down) * products.scale()) {
      continue;  // what slices round may leave that
    }
    const auto overflows = [&](double range) {
      return range * std::max(1.0, products.scale()) >= kMargin * format.max_finite;
    };
    const bool possible =
        (needed == Needed::down || overflows(ranges.up)) && (needed == Needed::up || overflows(ranges.down));
    if (!possible) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool slices_overflow(const EvaluationContext& context, const ComparedPort& compared, const tolerance::RunFacts& facts,
                     const model::ErrorModel& model, int slices, bool zeros) {
  if (compared.port().dtype != core::Dtype::fp16) {
    return false;
  }
  const op::Op& op = *context.prepared->c->op;
  const std::string_view port = compared.port().name;
  const std::vector<op::Operand> operands = op::operands_behind(op, context.prepared->rounding->operands, port);
  const op::GemmParams params = op::product_behind(op, context.group->params, port).value().params;
  if (zeros && params.epilogue != "relu") {
    return false;
  }
  const Products products(params, operands);
  const model::ErrorModel overflowing = tolerance::with_overflowing_slices(model, products.scale());
  const auto entry = compare_output(context, compared, overflowing);
  const auto criteria = tolerance::judge(entry->statistics, overflowing, facts, context.prepared->c->tolerance);
  return std::ranges::all_of(criteria, &tolerance::Criterion::ok) &&
         may_all_overflow(context, compared, products, params.epilogue, slices);
}

void add_slices_overflow(std::string_view port, int slices, bool zeros, std::vector<op::Finding>& findings) {
  op::Finding finding;
  finding.name = op::kSlicesOverflow.name;
  finding.port = port;
  finding.measured = 1;
  finding.cause = "sums of slices of k overflow in fp16";
  finding.text = fmt::format("{}: {} slices are added in that format, as the library declares", finding.cause, slices);
  finding.about = op::Finding::About::pattern;
  findings.push_back(finding);
  if (zeros) {
    finding.text += "; relu makes zeros of what is NaN or negative then";
    finding.about = op::Finding::About::numbers;
    findings.push_back(finding);
  }
}

}  // namespace numcheck::verdict
