#include "reference/softmax_row_sums.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "reference/softmax_kernels.hpp"
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

double total(const double (&chains)[kSumChains]) {
  return std::accumulate(std::begin(chains), std::end(chains), 0.0);
}

double total(const SumChains& chains) {
  tolerance::Sum<double> all;
  for (const double part : chains.sum) {
    all.add(part);
  }
  return std::isfinite(all.result()) ? all.result() + total(chains.lost) : all.result();
}

/// What the row's sum may be off by because masked scores have a share in the denominator and none in the sum: there, errors of
/// exponentials do not cancel.
double carried_by_masked(double expected, std::span<const float> bound) {
  constexpr double kWhole = 1 - 1e-9;
  return expected < kWhole ? (1 - expected) * std::reduce(bound.begin(), bound.end(), 0.0) : 0;
}

RowSum sum_row(std::span<const double> got, std::span<const double> y, std::span<const float> bound,
               core::Dtype format) {
  const double n = static_cast<double>(y.size());
  const core::DtypeInfo& info = core::dtype_info(format);
  const UlpsOf ulps{info.max_finite, std::ldexp(1.0, info.emin), std::ldexp(1.0, -info.fraction_bits)};
  SoftmaxRowChains chains;
  softmax_kernels().row_sums(got.data(), y.data(), bound.empty() ? nullptr : bound.data(), y.size(), ulps,
                             tolerance::kFlush, kLargestDetermined, chains);
  RowSum row;
  row.sum = total(chains.got);
  row.expected = total(chains.expected);
  row.counts = chains.determined && row.expected > 0 && std::isfinite(row.sum);
  row.limit = kUnit32 * (n + 12 + 4.7 * std::log(n)) * row.expected + total(chains.most) +
              carried_by_masked(row.expected, bound);
  const double relative = (tolerance::kRoundVariance * n / 3 + 16.0 / 3) * kUnit32 * kUnit32;
  row.predicted = std::sqrt(relative * row.expected * row.expected + total(chains.squares) / 12);
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
