#include "reference/softmax_diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "reference/cause.hpp"

namespace numcheck::reference {
namespace {

constexpr double kLeastShare = 0.9;
constexpr double kStandardDeviations = 3;  // of votes between two hypotheses

/// The exact softmax y of a row, as exponentials e_j = exp(t_j - m) and their sum: e is y over its largest, whose own
/// exponential is 1.
struct Row {
  std::span<const double> y;
  double largest = 0;
  core::Dtype format;

  [[nodiscard]] double exponential(std::size_t j) const { return y[j] / largest; }
  [[nodiscard]] double sum() const { return 1 / largest; }
  [[nodiscard]] double rounded(double x) const { return core::round_to(x, format); }
};

/// Errors of an exponential and of a quotient in FP32, in units of what kernels' have.
struct Errors {
  double exponential = 0, quotient = 0;

  /// exp(t) is 2^(t log2 e), whose argument is rounded.
  [[nodiscard]] double of(double e) const { return e * (1 + exponential * kUnit * (4 + std::fabs(std::log(e)))); }
  [[nodiscard]] double of_quotient(double x) const { return x * (1 + quotient * 4 * kUnit); }

 private:
  static constexpr double kUnit = 0x1p-24;
};

double quotient(const Row& row, double sum, std::size_t j, const Errors& errors) {
  const double e = row.exponential(j);
  return row.rounded(errors.of_quotient(row.rounded(e == 0 ? e : errors.of(e)) / sum));
}

double divided_by_exact_sum(const Row& row, double /*sum_of_rounded*/, std::size_t j, const Errors& errors) {
  return quotient(row, row.sum(), j, errors);
}

double divided_by_rounded_sum(const Row& row, double sum_of_rounded, std::size_t j, const Errors& errors) {
  return quotient(row, sum_of_rounded, j, errors);
}

double as_it_should_be(const Row& row, double /*sum_of_rounded*/, std::size_t j, const Errors& /*errors*/) {
  return row.rounded(row.y[j]);
}

struct Hypothesis {
  op::KnownCause known;
  const char* cause;  ///< with the format
  double (*result)(const Row&, double sum_of_rounded, std::size_t j, const Errors& errors);
};

constexpr std::array<Hypothesis, 2> kHypotheses = {{
    {op::kExponentialsRounded, "exponentials are rounded to {} before they are divided", &divided_by_exact_sum},
    {op::kExponentialsRoundedAndAdded, "exponentials are rounded to {} before they are added and divided",
     &divided_by_rounded_sum},
}};

/// The port's elements in the rows that have a sum: visit(got, row, sum of rounded exponentials, column).
template <class Visit>
void for_each_element(const op::Delivered& got, std::span<const double> expected, std::size_t columns,
                      const Visit& visit) {
  for (std::size_t begin = 0; begin + columns <= expected.size(); begin += columns) {
    const Row row{expected.subspan(begin, columns), *std::ranges::max_element(expected.subspan(begin, columns)),
                  got.dtype};
    if (!(row.largest > 0) || !std::isfinite(row.largest)) {
      continue;
    }
    double rounded_sum = row.sum();  // of masked and padding elements as well, which have no element
    for (std::size_t j = 0; j < columns; ++j) {
      rounded_sum += row.rounded(row.exponential(j)) - row.exponential(j);
    }
    for (std::size_t j = 0; j < columns; ++j) {
      visit(got.value[begin + j], row, rounded_sum, j);
    }
  }
}

using Result = decltype(Hypothesis::result);

/// Sum of squared distances between what was delivered and what a hypothesis predicts. In rows of nearly equal scores whole parts
/// have the same exponential: where it lies in the middle between two numbers, or its quotient does, errors of FP32 decide for
/// all of them, and either is as predicted.
double distance(const op::Delivered& got, std::span<const double> expected, std::size_t columns, Result result) {
  double total = 0;
  for_each_element(got, expected, columns, [&](double value, const Row& row, double rounded_sum, std::size_t j) {
    double off = std::fabs(value - result(row, rounded_sum, j, {}));
    for (const double e : {-1.0, 0.0, 1.0}) {
      for (const double q : {-1.0, 0.0, 1.0}) {
        off = off > 0 ? std::min(off, std::fabs(value - result(row, rounded_sum, j, {e, q}))) : off;
      }
    }
    total += std::isfinite(off) ? off * off : 0;
  });
  return total;
}

/// True if more numbers are nearer to what `other` predicts than to what `one` does, and by more than chance: in a few rows the
/// two differ in a handful, of which some are decided by errors of the exponentials. A row's elements with the same exponential
/// are one number: the same error decides all of them.
bool is_outvoted(Result one, Result other, const op::Delivered& got, std::span<const double> expected,
                 std::size_t columns) {
  double balance = 0, votes = 0;
  std::vector<double> counted;  // exponentials of the row
  for_each_element(got, expected, columns, [&](double value, const Row& row, double rounded_sum, std::size_t j) {
    if (j == 0) {
      counted.clear();
    }
    const double from_one = std::fabs(value - one(row, rounded_sum, j, {}));
    const double from_other = std::fabs(value - other(row, rounded_sum, j, {}));
    const double exponential = row.rounded(row.exponential(j));
    if (from_other != from_one && std::ranges::find(counted, exponential) == counted.end()) {
      counted.push_back(exponential);
      balance += from_other < from_one ? 1 : -1;
      ++votes;
    }
  });
  return balance > kStandardDeviations * std::sqrt(votes);
}

}  // namespace

std::vector<op::Finding> diagnose_softmax(const op::FindingRequest& request, std::string_view port,
                                          std::size_t columns) {
  const auto got = std::ranges::find(request.outputs, port, &op::Delivered::port);
  const auto values = std::ranges::find(request.expected->outputs, port, &op::OutputValues::port);
  if (got == request.outputs.end() || values == request.expected->outputs.end() || columns == 0 ||
      !request.sample->all()) {
    return {};
  }
  const std::span<const double> expected = values->value.span();
  const double error = distance(*got, expected, columns, &as_it_should_be);
  const Hypothesis* best = nullptr;
  double share = 0;
  for (const Hypothesis& hypothesis : kHypotheses) {
    const double explained = 1 - distance(*got, expected, columns, hypothesis.result) / error;
    // Not with NaN, where there is no error. The first supposes less.
    if (explained >= kLeastShare &&
        (best == nullptr || is_outvoted(best->result, hypothesis.result, *got, expected, columns))) {
      share = explained;
      best = &hypothesis;
    }
  }
  if (best == nullptr) {
    return {};
  }
  std::string cause = fmt::format(fmt::runtime(best->cause), core::dtype_info(got->dtype).name);
  return {cause_finding(best->known, port, share, std::move(cause), "the error", op::Finding::About::numbers)};
}

}  // namespace numcheck::reference
