#include "reference/softmax_row_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/ulp_size.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

using tolerance::kUnit32;

constexpr std::size_t kElementsPerTask = 1 << 16;
constexpr double kLargestDetermined =
    2;  ///< a larger bound than any probability: the op does not say which value is right

struct RowSum {
  bool counts = false;
  double sum = 0;       ///< of the delivered elements
  double expected = 0;  ///< of the reference's
  double limit = 1;
  double predicted = 1;  ///< rms of sum - expected

  [[nodiscard]] double excess() const { return std::fabs(sum - expected) / limit; }
};

constexpr std::size_t kChains = 8;  ///< of sums that do not wait for each other

using Chains = std::array<double, kChains>;

double total(const Chains& chains) {
  return std::accumulate(chains.begin(), chains.end(), 0.0);
}

/// What roundings of a row's elements leave in their sum: at most, and in mean square.
struct Roundings {
  double most = 0, square = 0;
};

Roundings roundings_of(std::span<const double> got, std::span<const double> y, core::Dtype format) {
  const core::UlpSize size(format);
  Chains most{}, square{};
  // Without checks of bounds, which would keep compilers from using vectors.
  double *const at_most = most.data(), *const squares = square.data();
  const double *const values = got.data(), *const expected = y.data();
  const auto add = [&](std::size_t chain, double value, double wanted) {
    const double magnitude = std::fabs(value);
    const double ulp = size.of(magnitude > wanted ? magnitude : wanted);
    const double one = wanted == 0 ? 0.0 : 1.0, other = value == 0 ? one : 1.0;
    at_most[chain] += other * (ulp / 2 + tolerance::kFlush);
    squares[chain] += one * (ulp * ulp);
  };
  std::size_t j = 0;
  for (; j + kChains <= y.size(); j += kChains) {
    for (std::size_t chain = 0; chain < kChains; ++chain) {
      add(chain, values[j + chain], expected[j + chain]);
    }
  }
  for (; j < y.size(); ++j) {
    add(0, values[j], expected[j]);
  }
  return {total(most), total(square) / 12};
}

/// Compensated, in chains: what a sum of two loses is exact without asking which is larger (Knuth).
double sum_of(std::span<const double> x) {
  Chains chains{}, lost{};
  double *const sums = chains.data(), *const losses = lost.data();
  const double* const from = x.data();
  const auto add = [&](std::size_t chain, double term) {
    const double next = sums[chain] + term, taken = next - sums[chain];
    losses[chain] += (sums[chain] - (next - taken)) + (term - taken);
    sums[chain] = next;
  };
  std::size_t j = 0;
  for (; j + kChains <= x.size(); j += kChains) {
    for (std::size_t chain = 0; chain < kChains; ++chain) {
      add(chain, from[j + chain]);
    }
  }
  for (; j < x.size(); ++j) {
    add(0, from[j]);
  }
  tolerance::Sum<double> all;
  for (const double part : chains) {
    all.add(part);
  }
  return std::isfinite(all.result()) ? all.result() + total(lost) : all.result();
}

RowSum sum_row(std::span<const double> got, std::span<const double> y, std::span<const float> bound,
               core::Dtype format) {
  const double n = static_cast<double>(y.size());
  const Roundings roundings = roundings_of(got, y, format);
  const bool determined =
      std::ranges::all_of(bound, [](float b) { return static_cast<double>(b) < kLargestDetermined; });
  RowSum row;
  row.sum = sum_of(got);
  row.expected = sum_of(y);
  row.counts = determined && row.expected > 0 && std::isfinite(row.sum);
  row.limit = kUnit32 * (n + 12 + 4.7 * std::log(n)) * row.expected + roundings.most;
  const double relative = (tolerance::kRoundVariance * n / 3 + 16.0 / 3) * kUnit32 * kUnit32;
  row.predicted = std::sqrt(relative * row.expected * row.expected + roundings.square);
  return row;
}

op::Finding worst_row(const std::vector<RowSum>& rows, std::string_view port, std::size_t columns, core::Dtype format) {
  const auto worst =
      std::ranges::max_element(rows, {}, [](const RowSum& row) { return row.counts ? row.excess() : -1; });
  op::Finding finding;
  finding.name = "row sum";
  finding.port = port;
  finding.limit = 1;
  if (worst != rows.end() && worst->counts) {
    finding.measured = worst->excess();
    finding.text = fmt::format("worst row {}: {:.9g} for {:.9g}; an FP32 sum of {} terms and {} outputs allow {:.3g}",
                               worst - rows.begin(), worst->sum, worst->expected, columns,
                               core::dtype_info(format).name, worst->limit);
  }
  return finding;
}

op::Finding spread(const std::vector<RowSum>& rows, std::string_view port) {
  op::Finding finding{.name = "row sum spread",
                      .port = std::string(port),
                      .text = "rms over rows of |sum - 1| in units of what independent roundings give"};
  double squares = 0;
  double count = 0;
  for (const RowSum& row : rows) {
    if (row.counts) {
      const double ratio = (row.sum - row.expected) / row.predicted;
      squares += ratio * ratio;
      ++count;
    }
  }
  finding.measured = count == 0 ? 0 : std::sqrt(squares / count);
  return finding;
}

template <class Outputs>
const auto& port_of(const Outputs& outputs, std::string_view port) {
  const auto found = std::ranges::find_if(outputs, [port](const auto& each) { return each.port == port; });
  if (found == std::ranges::end(outputs)) {
    throw core::InternalError("softmax row sums: there is no output " + std::string(port));
  }
  return *found;
}

class SoftmaxRowSums : public op::RowFindings {
 public:
  SoftmaxRowSums(std::string_view port, std::int64_t rows, std::size_t columns, core::Dtype format)
      : port_(port), columns_(columns), format_(format), rows_(static_cast<std::size_t>(rows)) {}

  void add(const op::FindingRequest& some, std::int64_t first) override {
    const op::Delivered& delivered = port_of(some.outputs, port_);
    const op::OutputValues& expected = port_of(some.expected->outputs, port_);
    core::parallel_chunks(delivered.value.size() / columns_, std::max<std::size_t>(1, kElementsPerTask / columns_),
                          [&](std::size_t, std::size_t begin, std::size_t end) {
                            for (std::size_t i = begin; i < end; ++i) {
                              const std::size_t at = i * columns_;
                              const std::span<const float> bound = expected.magnitude.span();
                              rows_[static_cast<std::size_t>(first) + i] = sum_row(
                                  delivered.value.subspan(at, columns_), expected.value.span().subspan(at, columns_),
                                  bound.empty() ? bound : bound.subspan(at, columns_), format_);
                            }
                          });
  }

  [[nodiscard]] std::vector<op::Finding> result(const op::FindingRequest* /*all*/) const override {
    std::vector<op::Finding> findings;
    findings.push_back(worst_row(rows_, port_, columns_, format_));
    findings.push_back(spread(rows_, port_));
    return findings;
  }

 private:
  std::string_view port_;
  std::size_t columns_;
  core::Dtype format_;
  std::vector<RowSum> rows_;
};

}  // namespace

std::unique_ptr<op::RowFindings> softmax_row_sums(std::string_view port, std::int64_t rows, std::size_t columns,
                                                  core::Dtype format) {
  return std::make_unique<SoftmaxRowSums>(port, rows, columns, format);
}

std::vector<op::Finding> softmax_row_sums(const op::FindingRequest& request, std::string_view port, std::size_t columns,
                                          core::Dtype format) {
  const std::size_t rows = port_of(request.outputs, port).value.size() / columns;
  SoftmaxRowSums sums(port, static_cast<std::int64_t>(rows), columns, format);
  sums.add(request, 0);
  return sums.result(&request);
}

}  // namespace numcheck::reference
