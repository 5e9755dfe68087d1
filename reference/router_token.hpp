// One token of the router: its scores, the experts chosen, their weights, and which other choices FP32 arithmetic may make.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "op/moe.hpp"
#include "reference/repeated_terms.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {

using tolerance::Sum;
using tolerance::Tracked;

inline constexpr double kSmall = 1e-20;  // TransformerEngine adds it to the sum of sigmoid scores

/// True if exp(x - largest) is exactly 0. A masked expert has such a logit.
template <class Scalar>
bool vanishes(const Scalar& x, const Scalar& largest) {
  return std::isinf(tolerance::value_of(x)) && tolerance::value_of(x) < tolerance::value_of(largest);
}

/// What a sum of n terms of one sign may be off by, squared, where they differ by less than its last bit: then they are all rounded
/// alike. `alike` is the mean of the cosine of the term's place between two numbers, for normal terms.
inline double of_near_terms(const std::vector<Tracked>& terms, double total) {
  const auto n = static_cast<double>(terms.size());
  const double mean = total / n, ulp = 2 * tolerance::kUnit32 * total;
  double spread2 = 0;
  for (const Tracked& term : terms) {
    spread2 += (term.y - mean) * (term.y - mean) / n;
  }
  const double step = n * tolerance::kUnit32 * total;
  const double alike = ulp > 0 ? std::exp(-4 * std::numbers::pi * std::numbers::pi * spread2 / (ulp * ulp)) : 0;
  return alike * step * step / 12;  // half of the partial sums are in the last binade: (n / 2)^2 u^2 / 3
}

/// Of scores, in any order: those of few different logits have few different errors, and so have their partial sums.
inline double sum_of(const std::vector<double>& scores, const std::vector<double>& /*logits*/) {
  Sum<double> sum;
  std::ranges::for_each(scores, [&sum](double x) { sum.add(x); });
  return sum.result();
}
inline Tracked sum_of(const std::vector<Tracked>& scores, const std::vector<Tracked>& logits) {
  Sum<Tracked> sum;
  RepeatedTerms terms;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    sum.add(scores[i]);
    terms.add(logits[i].y, static_cast<float>(scores[i].y), 1, scores[i]);
  }
  Tracked total = sum.result();
  total.v += std::max(terms.excess_variance(), of_near_terms(scores, total.y));
  return total;
}

template <class Scalar>
std::vector<Scalar> softmax(const std::vector<Scalar>& logits) {
  Scalar largest(-std::numeric_limits<double>::infinity());
  for (const Scalar& x : logits) {
    largest = tolerance::larger_of(largest, x);
  }
  std::vector<Scalar> out;
  for (const Scalar& x : logits) {
    out.push_back(vanishes(x, largest) ? Scalar(0.0) : tolerance::exponential(x - largest, true));
  }
  const Scalar total = sum_of(out, logits);
  for (Scalar& x : out) {
    x = x / total;
  }
  return out;
}

/// Below -88.7 the exponential of -x overflows FP32, and the score is 0 instead of a subnormal number.
inline double flushed(double x) {
  return x;
}
inline Tracked flushed(const Tracked& x) {
  return tolerance::detail::with_underflow(x, tolerance::kFlush);
}

template <class Scalar>
std::vector<Scalar> sigmoid(const std::vector<Scalar>& logits) {
  std::vector<Scalar> out;
  for (const Scalar& x : logits) {
    const double given = tolerance::value_of(x);
    out.push_back(std::isinf(given) ? Scalar(given > 0 ? 1.0 : 0.0)
                                    : flushed(Scalar(1.0) / (Scalar(1.0) + tolerance::exponential(-x, true))));
  }
  return out;
}

inline double bound_of(double) {
  return 0;
}
inline double bound_of(const Tracked& x) {
  return x.b;
}

/// One token: its scores, which experts are chosen, and their weights.
template <class Scalar>
class RoutedToken {
 public:
  RoutedToken(const op::RouterTopkParams& p, const double* logits)
      : p_(p), logits_(logits, logits + p.experts), late_(p.score == "softmax_post") {
    scores_ = late_ ? logits_ : p.score == "sigmoid" ? sigmoid(logits_) : softmax(logits_);
    unknown_ = std::ranges::any_of(scores_, [](const Scalar& x) { return std::isnan(tolerance::value_of(x)); });
    if (!unknown_) {
      choose();
      weigh();
    }
  }

  /// True if a score is NaN: nothing defines what is larger than a NaN.
  [[nodiscard]] bool unknown() const { return unknown_; }

  [[nodiscard]] bool chosen(std::size_t expert) const { return chosen_[expert]; }
  [[nodiscard]] const Scalar& weight(std::size_t expert) const { return weights_[expert]; }

  [[nodiscard]] bool chose(const std::vector<bool>& experts) const { return !unknown_ && chosen_ == experts; }

  /// True if FP32 arithmetic may choose other experts: the last one chosen and the first one left out are tied.
  [[nodiscard]] bool tied() const { return tied_; }

  /// Chooses these experts instead, if FP32 arithmetic may; false if it may not.
  [[nodiscard]] bool choose_instead(const std::vector<bool>& chosen) {
    if (unknown_ || std::ranges::count(chosen, true) != p_.topk) {
      return false;
    }
    for (std::size_t in = 0; in < chosen.size(); ++in) {
      for (std::size_t out = 0; chosen[in] && out < chosen.size(); ++out) {
        if (!chosen[out] && tolerance::value_of(scores_[out]) > tolerance::value_of(scores_[in]) &&
            !within_errors(scores_[out], scores_[in])) {
          return false;
        }
      }
    }
    chosen_ = chosen;
    weigh();
    return true;
  }

 private:
  /// Scores are rounded to FP32 before they are compared: equal ones are tied even if they are exact. The gap between two
  /// infinities is NaN.
  static bool within_errors(const Scalar& a, const Scalar& b) {
    const double gap = std::fabs(tolerance::value_of(a) - tolerance::value_of(b));
    return !(gap > bound_of(a) + bound_of(b));
  }

  void choose() {
    std::vector<std::size_t> order(scores_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [this](std::size_t a, std::size_t b) {
      return tolerance::value_of(scores_[a]) > tolerance::value_of(scores_[b]);
    });
    chosen_.assign(scores_.size(), false);
    const auto k = static_cast<std::size_t>(p_.topk);
    std::for_each_n(order.begin(), k, [this](std::size_t expert) { chosen_[expert] = true; });
    for (std::size_t in = 0; in < k && k < order.size() && !tied_; ++in) {
      tied_ = std::any_of(order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                          [&](std::size_t out) { return within_errors(scores_[order[in]], scores_[out]); });
    }
  }

  void weigh() {
    weights_.assign(scores_.size(), Scalar(0.0));
    std::vector<std::size_t> experts;
    std::vector<Scalar> picked, logits;
    for (std::size_t expert = 0; expert < scores_.size(); ++expert) {
      if (chosen_[expert]) {
        experts.push_back(expert);
        picked.push_back(scores_[expert]);
        logits.push_back(logits_[expert]);
      }
    }
    if (late_) {
      picked = softmax(picked);
    } else if (p_.score == "sigmoid" && p_.topk > 1) {
      const Scalar total = sum_of(picked, logits) + Scalar(kSmall);
      std::ranges::for_each(picked, [&total](Scalar& x) { x = x / total; });
    }
    for (std::size_t i = 0; i < experts.size(); ++i) {
      weights_[experts[i]] = picked[i] * Scalar(static_cast<double>(static_cast<float>(p_.scaling)));
    }
  }

  const op::RouterTopkParams& p_;
  std::vector<Scalar> logits_, scores_, weights_;
  std::vector<bool> chosen_;
  bool late_;
  bool tied_ = false;
  bool unknown_ = false;
};

}  // namespace numcheck::reference
