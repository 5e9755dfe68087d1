#include "verdict/line_factors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "metric/repeats.hpp"
#include "op/grouped_gemm.hpp"
#include "tolerance/gate_table.hpp"
#include "verdict/expectation.hpp"

namespace numcheck::verdict {
namespace {

constexpr std::int64_t kTile = 64;

/// Of the elements of a group that count.
struct Sums {
  double count = 0, sum = 0, squares = 0;

  void add(double r) {
    count += 1;
    sum += r;
    squares += r * r;
  }
  void add(const Sums& other) {
    count += other.count;
    sum += other.sum;
    squares += other.squares;
  }
  [[nodiscard]] double mean() const { return sum / count; }
  /// Squared, of the mean; so many elements are rounded as one.
  [[nodiscard]] double error(double repeats) const {
    return std::max(0.0, squares / count - mean() * mean()) / count * std::min(repeats, count);
  }
};

/// Groups of one kind, and how many elements each has.
struct Kind {
  std::string_view name;
  std::vector<Sums> sums;
  double elements;
};

using Kinds = std::array<Kind, 3>;

/// Relative errors of the elements that count.
class RelativeErrors {
 public:
  RelativeErrors(const metric::CompareInput& input, const ComparedPort& compared, const op::GemmParams& p, double scale)
      : input_(input), compared_(compared), terms_(static_cast<double>(p.k)), scale_(scale) {}

  [[nodiscard]] bool counts(std::size_t at) const {
    const double y = input_.expected[at], a = static_cast<double>(input_.magnitude[at]);
    const double deviation = static_cast<double>(input_.deviation[at]);
    constexpr double kSimilar = 8, kOneSign = 0.9;
    return std::isfinite(y) && y != 0 && std::fabs(y) >= kOneSign * a &&
           terms_ * deviation * deviation <= kSimilar * y * y;
  }
  /// Adds r to f(column) for each element of a row that counts and is stored as a number.
  template <class F>
  void each(std::int64_t row, F f) const {
    const std::int64_t columns = compared_.port().cols;
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(columns));
    const auto first = static_cast<std::size_t>(row * columns);
    compared_.bits_from(first, bits);
    for (std::size_t c = 0; c < bits.size(); ++c) {
      if (!counts(first + c)) {
        continue;
      }
      const double got = core::decode(bits[c], compared_.port().dtype);
      if (std::isfinite(got)) {
        f(static_cast<std::int64_t>(c), got / scale_ / input_.expected[first + c] - 1);
      }
    }
  }

 private:
  const metric::CompareInput& input_;
  const ComparedPort& compared_;
  double terms_, scale_;
};

/// Of 1024 elements, spread over the output.
bool mostly_count(const RelativeErrors& errors, std::int64_t elements) {
  constexpr std::int64_t kLooks = 1024;
  const std::int64_t looks = std::min(kLooks, elements);
  std::int64_t count = 0;
  for (std::int64_t n = 0; n < looks; ++n) {
    count += errors.counts(static_cast<std::size_t>((2 * n + 1) * elements / (2 * looks))) ? 1 : 0;
  }
  return 2 * count >= looks;
}

/// Sums of one matrix of the batch, added to those of the others. Each chunk has whole tiles, and sums of all columns.
void add_matrix(const op::Port& port, std::int64_t matrix, const RelativeErrors& errors, Kinds& kinds) {
  constexpr std::int64_t kMostChunks = 32;
  const std::int64_t across = (port.cols + kTile - 1) / kTile, down = (port.rows + kTile - 1) / kTile;
  const std::int64_t rows = (down + kMostChunks - 1) / kMostChunks * kTile;
  std::vector<Sums> of_rows(static_cast<std::size_t>(port.rows)), of_tiles(static_cast<std::size_t>(across * down));
  std::vector<std::vector<Sums>> of_columns(static_cast<std::size_t>((port.rows + rows - 1) / rows));
  core::parallel_chunks(static_cast<std::size_t>(port.rows), static_cast<std::size_t>(rows),
                        [&](std::size_t chunk, std::size_t begin, std::size_t end) {
                          std::vector<Sums>& columns = of_columns[chunk];
                          columns.resize(static_cast<std::size_t>(port.cols));
                          for (auto row = static_cast<std::int64_t>(begin); row < static_cast<std::int64_t>(end);
                               ++row) {
                            Sums* const tiles = of_tiles.data() + row / kTile * across;
                            Sums& own = of_rows[static_cast<std::size_t>(row)];
                            errors.each(matrix * port.rows + row, [&](std::int64_t column, double r) {
                              own.add(r);
                              columns[static_cast<std::size_t>(column)].add(r);
                              tiles[column / kTile].add(r);
                            });
                          }
                        });
  std::vector<Sums> columns(static_cast<std::size_t>(port.cols));
  for (const std::vector<Sums>& part : of_columns) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].add(part[c]);
    }
  }
  for (const auto& [kind, sums] : {std::pair(0, &of_rows), std::pair(1, &columns), std::pair(2, &of_tiles)}) {
    std::vector<Sums>& all = kinds.at(static_cast<std::size_t>(kind)).sums;
    all.insert(all.end(), sums->begin(), sums->end());
  }
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The group of a kind that is closest to its limit.
struct Odd {
  const Kind* kind = nullptr;
  std::size_t index = 0;
  double factor = 0, limit = 1;

  [[nodiscard]] double ratio() const { return std::fabs(factor) / limit; }
};

/// What groups may be off by besides their scatter.
struct Allowed {
  double slack = 0;    ///< of either sign
  double loss = 0;     ///< by truncation, at most
  double errors = 0;   ///< standard errors of a group
  double repeats = 1;  ///< elements that are rounded as one
};

Odd oddest(const Kind& kind, const Allowed& allowed) {
  constexpr std::size_t kFewest = 16;
  constexpr double kNormal = 1.4826;
  const auto is_full = [&kind](const Sums& sums) { return 2 * sums.count >= kind.elements && sums.count > 1; };
  std::vector<double> means;
  for (const Sums& sums : kind.sums) {
    if (is_full(sums)) {
      means.push_back(sums.mean());
    }
  }
  if (means.size() < kFewest) {
    return {};
  }
  const double middle = median(means);
  std::ranges::transform(means, means.begin(), [middle](double mean) { return std::fabs(mean - middle); });
  const double spread = kNormal * median(std::move(means));
  const double order = std::min(allowed.loss, 2 * std::fabs(middle));  // of summation
  Odd odd;
  for (std::size_t i = 0; i < kind.sums.size(); ++i) {
    const Sums& sums = kind.sums[i];
    if (is_full(sums)) {
      const double limit =
          order + allowed.slack + allowed.errors * std::sqrt(spread * spread + sums.error(allowed.repeats));
      const Odd one = {.kind = &kind, .index = i, .factor = sums.mean() - middle, .limit = limit};
      odd = odd.kind == nullptr || one.ratio() > odd.ratio() ? one : odd;
    }
  }
  return odd;
}

/// What sums may lose at least, if they lose anything.
double least_loss(const EvaluationContext& context) {
  const op::Mode& mode = *context.prepared->c->mode;
  constexpr double kFp8 = 0x1p-13;  // also where they are promoted
  const bool is_chain = context.arithmetic == model::MatrixArithmetic::fp32_chain;
  const core::Dtype sums = mode.compute == op::Compute::fp16 ? core::Dtype::fp16 : core::Dtype::fp32;
  return mode.scaled && !is_chain ? kFp8 : core::dtype_info(is_chain ? core::Dtype::fp32 : sums).unit_roundoff;
}

/// Whether what is left of the output is the sums, to more than a few numbers of the format: sums within one step of a short one
/// are all rounded alike but for a few.
bool shows_factors(const op::GemmParams& p, const op::Port& port, const model::ErrorModel& model,
                   const metric::Statistics& statistics) {
  constexpr double kFewestSteps = 1.5;
  const std::int64_t width = core::dtype_info(port.dtype).storage_bytes;
  constexpr std::int64_t kFewestTerms = 16;
  const bool is_sum = p.beta == 0 && !p.bias && p.epilogue != "gelu" && p.k >= kFewestTerms;
  const bool is_fine = width == 4 || (width == 2 && statistics.spread_ulps >= kFewestSteps);
  return is_sum && is_fine && !model.exact && std::isfinite(model.slope_slack) && !model.rows_agree &&
         !model.columns_agree;
}

/// The group that is closest to its limit; no kind if nothing is asked.
Odd oddest_of(const Kinds& kinds, const EvaluationContext& context, const model::ErrorModel& model, double repeats) {
  constexpr double kRoom = 1.5;   // as in the slope of all
  constexpr double kFactors = 2;  // few different codes scatter less evenly than normal numbers
  std::uint64_t count = 0;
  for (const Kind& kind : kinds) {
    count += kind.sums.size();
  }
  const Allowed allowed = {.slack = model.slope_slack + 4 * least_loss(context),
                           .loss = -kRoom * (model.slope_low + model.slope_coherent),
                           .errors = kFactors * tolerance::lambda_of(count),
                           .repeats = repeats};
  Odd odd;
  for (const Kind& kind : kinds) {
    const Odd one = oddest(kind, allowed);
    odd = one.kind != nullptr && (odd.kind == nullptr || one.ratio() > odd.ratio()) ? one : odd;
  }
  return odd;
}

}  // namespace

std::optional<tolerance::Criterion> judge_line_factors(const EvaluationContext& context, const ComparedPort& compared,
                                                       const model::ErrorModel& model,
                                                       const metric::Statistics& statistics) {
  const op::Port& port = compared.port();
  const plan::Case& c = *context.prepared->c;
  const std::optional<op::Product> product = op::product_behind(*c.op, c.params, port.name);
  if (!product.has_value() || !context.group->sample.all() || port.elements() == 0 ||
      !shows_factors(product->params, port, model, statistics)) {
    return {};
  }
  const Expectation expectation(context, compared, model);
  const RelativeErrors errors(expectation.input(), compared, product->params, model.output_scale);
  if (expectation.input().magnitude.empty() || !mostly_count(errors, port.elements())) {
    return {};
  }
  Kinds kinds{Kind{"row", {}, static_cast<double>(port.cols)}, Kind{"column", {}, static_cast<double>(port.rows)},
              Kind{"64 x 64 tile", {}, static_cast<double>(std::min(kTile, port.cols) * std::min(kTile, port.rows))}};
  for (std::int64_t matrix = 0; matrix < port.batch; ++matrix) {
    add_matrix(port, matrix, errors, kinds);
  }
  const double repeats = std::max(statistics.repeats, metric::repeats_of(expectation.input().expected));
  const Odd odd = oddest_of(kinds, context, model, repeats);
  if (odd.kind == nullptr) {
    return {};
  }
  return tolerance::Criterion{
      std::string(tolerance::gate_name(tolerance::Gate::line_factor)), std::fabs(odd.factor), odd.limit,
      std::fabs(odd.factor) <= odd.limit,
      fmt::format("{} {} of {} is {:.3g} % too {} beside the others", odd.kind->name, odd.index, odd.kind->sums.size(),
                  100 * std::fabs(odd.factor), odd.factor > 0 ? "large" : "small")};
}

}  // namespace numcheck::verdict
