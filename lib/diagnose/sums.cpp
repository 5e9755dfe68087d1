// Hypotheses about the terms of a product's sums: some left out, some added twice.
//
// With E = D - Y over a block of rows and columns, the coefficient of term t in the error is
//
//   c_t = sum_ij a_it E_ij b_tj / (alpha sum_i a_it^2 sum_j b_tj^2)
//
// -1 for a term that is missing, 1 for one that is there twice, and around 0 otherwise: other terms of the error add noise of
// sqrt(their number / (rows columns)).
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/gemm.hpp"

namespace numcheck::diagnose {
namespace {

constexpr std::int64_t kBlock = 192;  // rows and columns that are looked at

/// Rows of op(A) and columns of op(B) from the first matrix of the batch, as rows of k elements each.
struct Block {
  std::int64_t rows = 0, cols = 0, k = 0;
  std::vector<double> a, b, error;
};

/// `count` of `of` indices, evenly spread.
std::int64_t spread(std::int64_t i, std::int64_t count, std::int64_t of) {
  return i * of / count;
}

/// Of at most so many rows and columns.
Block take_block(const Evidence& evidence, const op::GemmParams& p, std::int64_t most) {
  const Subject& subject = evidence.subject;
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  const core::Buffer<double> delivered = delivered_numbers(subject, "d");
  const prepare::SharedDoubles a = subject.inputs.of(op::port_named(ports, "a"));
  const prepare::SharedDoubles b = subject.inputs.of(op::port_named(ports, "b"));
  const op::Port* bias_port = op::find_port(ports, "bias");
  const op::Port* c_port = op::find_port(ports, "c");
  const prepare::SharedDoubles bias = bias_port == nullptr ? nullptr : subject.inputs.of(*bias_port);
  const prepare::SharedDoubles c = c_port == nullptr ? nullptr : subject.inputs.of(*c_port);
  const double factor = p.alpha * static_cast<double>(subject.inputs.factor(ports, op::port_named(ports, "a"))) *
                        static_cast<double>(subject.inputs.factor(ports, op::port_named(ports, "b")));
  Block block{.rows = std::min(p.m, most), .cols = std::min(p.n, most), .k = p.k, .a = {}, .b = {}, .error = {}};
  const auto size = [](std::int64_t x, std::int64_t y) { return static_cast<std::size_t>(x * y); };
  block.a.resize(size(block.rows, p.k));
  block.b.resize(size(block.cols, p.k));
  block.error.resize(size(block.rows, block.cols));
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const std::int64_t row = spread(i, block.rows, p.m);
    for (std::int64_t t = 0; t < p.k; ++t) {
      block.a[size(i, p.k) + static_cast<std::size_t>(t)] =
          factor * (*a)[static_cast<std::size_t>(p.trans_a ? t * p.m + row : row * p.k + t)];
    }
  }
  for (std::int64_t j = 0; j < block.cols; ++j) {
    const std::int64_t col = spread(j, block.cols, p.n);
    for (std::int64_t t = 0; t < p.k; ++t) {
      block.b[size(j, p.k) + static_cast<std::size_t>(t)] =
          (*b)[static_cast<std::size_t>(p.trans_b ? col * p.k + t : t * p.n + col)];
    }
  }
  core::parallel_for(static_cast<std::size_t>(block.rows), [&](std::size_t i) {
    const std::int64_t row = spread(static_cast<std::int64_t>(i), block.rows, p.m);
    for (std::int64_t j = 0; j < block.cols; ++j) {
      const std::int64_t col = spread(j, block.cols, p.n);
      double y = (bias == nullptr ? 0 : (*bias)[static_cast<std::size_t>(col)]) +
                 (c == nullptr ? 0 : p.beta * (*c)[static_cast<std::size_t>(row * p.n + col)]);
      for (std::int64_t t = 0; t < p.k; ++t) {
        y += block.a[i * static_cast<std::size_t>(p.k) + static_cast<std::size_t>(t)] *
             block.b[size(j, p.k) + static_cast<std::size_t>(t)];
      }
      const double e = delivered[static_cast<std::size_t>(row * p.n + col)] - y;
      block.error[i * static_cast<std::size_t>(block.cols) + static_cast<std::size_t>(j)] = std::isfinite(e) ? e : 0;
    }
  });
  return block;
}

/// c_t of every term, rounded to whole numbers, and added to `all`. True if there is any.
bool add_coefficients(const Block& block, std::vector<int>& all) {
  std::vector<int> found(all.size());
  core::parallel_for(all.size(), [&](std::size_t t) {
    double along = 0, a_square = 0, b_square = 0;
    for (std::int64_t j = 0; j < block.cols; ++j) {
      const double b = block.b[static_cast<std::size_t>(j * block.k) + t];
      b_square += b * b;
    }
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const double a = block.a[static_cast<std::size_t>(i * block.k) + t];
      a_square += a * a;
      double dot = 0;
      for (std::int64_t j = 0; j < block.cols; ++j) {
        dot += block.error[static_cast<std::size_t>(i * block.cols + j)] *
               block.b[static_cast<std::size_t>(j * block.k) + t];
      }
      along += a * dot;
    }
    const double c = along / (a_square * b_square);
    constexpr double kMost = 8;
    found[t] = std::isfinite(c) && std::abs(c) < kMost ? static_cast<int>(std::lround(c)) : 0;
    all[t] += found[t];
  });
  return std::ranges::any_of(found, [](int c) { return c != 0; });
}

/// Takes c_t a_t b_t of all terms out of the error.
void take_out(const Block& before, const std::vector<int>& coefficient, Block& block) {
  core::parallel_for(static_cast<std::size_t>(block.rows), [&](std::size_t i) {
    for (std::int64_t j = 0; j < block.cols; ++j) {
      double sum = 0;
      for (std::size_t t = 0; t < coefficient.size(); ++t) {
        sum += coefficient[t] == 0 ? 0
                                   : coefficient[t] * block.a[i * coefficient.size() + t] *
                                         block.b[static_cast<std::size_t>(j) * coefficient.size() + t];
      }
      const std::size_t place = i * static_cast<std::size_t>(block.cols) + static_cast<std::size_t>(j);
      block.error[place] = before.error[place] - sum;
    }
  });
}

/// Again with what the terms found leave, because the noise of many terms hides some.
std::vector<int> coefficients(const Block& block) {
  std::vector<int> all(static_cast<std::size_t>(block.k));
  Block left = block;
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds && add_coefficients(left, all); ++round) {
    take_out(block, all, left);
  }
  return all;
}

/// "0 to 15 and 64", of the terms with that coefficient; up to a few ranges.
std::string ranges_text(const std::vector<int>& coefficient, int of) {
  constexpr int kMostRanges = 4;
  std::string text;
  int ranges = 0;
  for (std::size_t t = 0; t < coefficient.size(); ++t) {
    if (coefficient[t] != of) {
      continue;
    }
    const std::size_t first = t;
    while (t + 1 < coefficient.size() && coefficient[t + 1] == of) {
      ++t;
    }
    if (++ranges > kMostRanges) {
      return text + " and others";
    }
    text += text.empty() ? "" : ", ";
    text += first == t ? fmt::format("{}", first) : fmt::format("{} to {}", first, t);
  }
  return text;
}

/// Whether most terms have one coefficient: then the product has another factor, and the others may be a second cause.
bool is_factor(const std::vector<int>& coefficient) {
  std::vector<int> sorted = coefficient;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle != 0;
}

/// What the coefficients say: 1 more or less of each term.
Hypothesis with_coefficients(const Evidence& evidence, const op::GemmParams& p, const std::vector<int>& coefficient) {
  const Subject& subject = evidence.subject;
  // A term that is missing is one whose element of A is 0.
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  const prepare::SharedDoubles a = subject.inputs.of(op::port_named(ports, "a"));
  auto changed = std::make_shared<core::Buffer<double>>(a->size());
  for (std::size_t i = 0; i < a->size(); ++i) {
    const std::size_t t = p.trans_a ? i / static_cast<std::size_t>(p.m) % static_cast<std::size_t>(p.k)
                                    : i % static_cast<std::size_t>(p.k);
    (*changed)[i] = (*a)[i] * (1 + coefficient[t]);
  }
  Trial trial = as_declared(subject);
  trial.inputs.set("a", std::move(changed));
  const std::string missing = ranges_text(coefficient, -1), twice = ranges_text(coefficient, 1);
  const auto terms = [&coefficient](int change, std::string_view ranges, std::string_view of) {
    const bool is_one = std::ranges::count(coefficient, change) == 1;
    return fmt::format("term{} {}{} {}", is_one ? "" : "s", ranges, of, is_one ? "is" : "are");
  };
  std::string what = missing.empty() ? std::string() : terms(-1, missing, " of every sum") + " left out";
  if (!twice.empty()) {
    what += fmt::format("{}{} added twice", what.empty() ? "" : ", and ", terms(1, twice, ""));
  }
  if (what.empty()) {
    what = "terms of every sum are added several times";
  }
  return {
      twice.empty()     ? "terms_left_out"
      : missing.empty() ? "terms_added_twice"
                        : "terms_replaced",
      {},
      std::move(what),
      fmt::format("k is {}: look at how the kernel splits it (tail of a tile, stages, split-K), and whether another "
                  "algorithm or a k that is a multiple of the tile gives the right result.",
                  p.k),
      std::move(trial)};
}

double after(const std::string& epilogue, double z) {
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
  const double relu = std::max(z, 0.0);
  return epilogue == "relu" ? relu : z / (1 + std::exp(-2 * kSqrtTwoOverPi * (z + 0.044715 * z * z * z)));
}

/// Before a function that is not linear, the coefficients of terms are unknown; but of sums that end early, or begin late, some
/// elements say where: those counts of terms that fit best, if they fit much better than all of them.
std::vector<Hypothesis> cut_sums(const Evidence& evidence, const op::GemmParams& p) {
  constexpr std::int64_t kMost = 16;  // rows and columns
  const Block block = take_block(evidence, p, kMost);
  const core::Buffer<double> delivered = delivered_numbers(evidence.subject, "d");
  const auto k = static_cast<std::size_t>(p.k);
  std::vector<double> ended(k + 1), begun(k + 1);  // squared distances after the first t terms, and after all but these
  std::vector<double> sums(k + 1);
  for (std::int64_t i = 0; i < block.rows; ++i) {
    for (std::int64_t j = 0; j < block.cols; ++j) {
      for (std::size_t t = 0; t < k; ++t) {
        sums[t + 1] =
            sums[t] + block.a[static_cast<std::size_t>(i) * k + t] * block.b[static_cast<std::size_t>(j) * k + t];
      }
      const std::int64_t row = spread(i, block.rows, p.m), col = spread(j, block.cols, p.n);
      const double d = delivered[static_cast<std::size_t>(row * p.n + col)];
      const double besides = d - block.error[static_cast<std::size_t>(i * block.cols + j)] - sums[k];
      for (std::size_t t = 0; t <= k && std::isfinite(d) && std::isfinite(besides); ++t) {
        ended[t] += std::pow(d - after(p.epilogue, besides + sums[t]), 2);
        begun[t] += std::pow(d - after(p.epilogue, besides + sums[k] - sums[t]), 2);
      }
    }
  }
  constexpr double kMuchLess = 1.0 / 16;
  std::vector<Hypothesis> all;
  for (const std::vector<double>* distances : {&ended, &begun}) {
    const auto best = static_cast<std::size_t>(std::ranges::min_element(*distances) - distances->begin());
    const bool is_end = distances == &ended;
    if (best == 0 || best == k || (*distances)[best] > kMuchLess * ended[k]) {
      continue;  // all terms, or none
    }
    std::vector<int> coefficient(k);
    for (std::size_t t = 0; t < k; ++t) {
      coefficient[t] = (t >= best) == is_end ? -1 : 0;
    }
    all.push_back(with_coefficients(evidence, p, coefficient));
  }
  return all;
}

std::vector<Hypothesis> terms_of_sums(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  if (subject.c.op->name != "gemm" || evidence.port != "d") {
    return {};
  }
  const auto p = op::from_params<op::GemmParams>(subject.c.params);
  constexpr std::int64_t kFewest = 16;  // outputs in a block, below which noise hides whole numbers
  if (p.alpha == 0 || p.k < 2 || std::min(p.m, p.n) < kFewest) {
    return {};
  }
  if (p.epilogue != "none") {
    return cut_sums(evidence, p);
  }
  const std::vector<int> coefficient = coefficients(take_block(evidence, p, kBlock));
  if (std::ranges::all_of(coefficient, [](int c) { return c == 0; }) || is_factor(coefficient)) {
    return {};
  }
  return {with_coefficients(evidence, p, coefficient)};
}

constexpr std::array kRows = {CatalogueRow{"terms_left_out, terms_added_twice, terms_replaced",
                                           "which terms of a product's sums are missing or repeated", &terms_of_sums}};

}  // namespace

std::span<const CatalogueRow> sum_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
