#include "reference/gemm_k_ranges.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "op/field.hpp"
#include "op/gemm.hpp"
#include "reference/cause.hpp"
#include "reference/gemm_range_search.hpp"

namespace numcheck::reference {
namespace {

constexpr double kLeastShare = 0.9, kLeastShareOfAll = 0.9;
constexpr double kLead = 0.05;  // over a wrong scale, and over the same number of products elsewhere in k
constexpr double kFewestElements = 4;
constexpr double kHypotheses = 1e5;  // that are tried, at most

/// The share that an explanation must have: random ones of n elements reach 1 - h^(-2/n), the best of h.
double least_share(double elements) {
  return std::max(kLeastShare, 1 - 0.5 * std::pow(kHypotheses, -2 / elements));
}

std::string range_text(const Range& range, std::int64_t k) {
  if (range.size() == k) {
    return "all of k";
  }
  if (range.end == k) {
    return fmt::format("the last {} of k", range.size());
  }
  if (range.begin == 0) {
    return fmt::format("the first {} of k", range.size());
  }
  return range.size() == 1 ? fmt::format("k = {}", range.begin)
                           : fmt::format("k = {} to {}", range.begin, range.end - 1);
}

std::string source_text(const Source& from) {
  if (from.rows == 0 && from.columns == 0) {
    return fmt::format("from {} earlier in k", std::max(from.a_earlier, from.b_earlier));
  }
  return from.columns == 0 ? "from the next row of A"
         : from.rows == 0  ? "from the next column of B"
                           : "from the next row of A and the next column of B";
}

/// Which operand is read from elsewhere in k, if only one is.
std::string operand_text(const Source& from) {
  return from.a_earlier == from.b_earlier ? "" : from.a_earlier != 0 ? " of A" : " of B";
}

std::string text_of(const Explanation& found, std::int64_t k) {
  const std::string range = range_text(found.range, k);
  const bool one = found.range.size() == 1 || found.range.size() == k;
  const char* verb = one ? "is" : "are";
  switch (found.kind) {
    case Explanation::Kind::missing:
      return fmt::format("{} {} missing", range, verb);
    case Explanation::Kind::twice:
      return fmt::format("{} {} counted twice", range, verb);
    case Explanation::Kind::elsewhere:
      return fmt::format("{}{} {} read {}", range, operand_text(found.source), verb, source_text(found.source));
  }
  return {};
}

/// Share of the error that a wrong scale of the whole product explains, and 1 - that scale.
struct ScaleError {
  double share = 0;
  double missing = 0;
};

ScaleError scale_error(const GemmResiduals& problem) {
  double with_residual = 0, with_itself = 0, energy = 0;
  for (const auto* elements : {&problem.elements(), &problem.controls()}) {
    for (const Element& e : *elements) {
      double sum = 0;
      for (std::int64_t t = 0; t < problem.k(); ++t) {
        sum += problem.product(e, t);
      }
      with_residual += e.residual * sum;
      with_itself += sum * sum;
      energy += e.residual * e.residual;
    }
  }
  return {with_residual * with_residual / with_itself / energy, -with_residual / with_itself};
}

/// True if all products of each element are equal: the result tells how many were added, and not which.
bool products_are_alike(const GemmResiduals& problem) {
  return std::ranges::all_of(problem.elements(), [&problem](const Element& e) {
    const double first = problem.product(e, 0);
    for (std::int64_t t = 1; t < problem.k(); ++t) {
      if (problem.product(e, t) != first) {
        return false;
      }
    }
    return true;
  });
}

/// "3 of k are missing", if the error is that of a whole number of products.
std::string count_text(const ScaleError& scale, std::int64_t k) {
  const double count = std::abs(scale.missing) * static_cast<double>(k);
  const double whole = std::round(count);
  if (!(scale.share > kLeastShareOfAll) || !(whole >= 1) || std::abs(count - whole) > 0.01) {
    return {};
  }
  return fmt::format("{:.0f} of k {} {}, or the scale is wrong (products that are all alike cannot tell)", whole,
                     whole == 1 ? "is" : "are", scale.missing > 0 ? "missing" : "counted twice");
}

op::Finding finding(const op::FindingRequest& request, double share, std::string cause) {
  return cause_finding(op::kRangeOfK, request.outputs[0].port, share, std::move(cause), "the error",
                       op::Finding::About::numbers);
}

}  // namespace

std::vector<op::Finding> gemm_k_ranges(const op::FindingRequest& request) {
  const auto p = op::from_params<op::GemmParams>(*request.params);
  if (p.epilogue == "gelu" || p.k == 0) {
    return {};
  }
  const GemmResiduals problem(request);
  if (!std::isfinite(problem.energy()) || problem.effective_count() < kFewestElements) {
    return {};
  }
  const ScaleError scale = scale_error(problem);
  if (products_are_alike(problem)) {
    std::string text = count_text(scale, p.k);
    return text.empty() ? std::vector<op::Finding>() : std::vector{finding(request, scale.share, std::move(text))};
  }
  const Explanation found = best_explanation(problem);
  const bool all = found.range.size() == p.k;
  // Written so that NaN, from infinite products, is no explanation.
  if (!(found.share >= (all ? kLeastShareOfAll : least_share(problem.effective_count()))) ||
      (!all && scale.share > found.share - kLead) ||
      (found.kind != Explanation::Kind::elsewhere && is_ambiguous(problem, found, kLead))) {
    return {};
  }
  return {finding(request, found.share, text_of(found, p.k))};
}

}  // namespace numcheck::reference
