#include "reference/attention_gradient_fates.hpp"

#include <algorithm>
#include <cmath>

#include "reference/gradient_fact_kernels.hpp"
#include "reference/special_rows.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

constexpr double kMayOverflow = tolerance::kMayOverflow;
constexpr double kSurelyThere = 0x1p-14;  // the least normal number of FP16
constexpr double kMayExceed = 80;         // e^88 overflows
constexpr double kFlatSlope = 0x1p-10;    // an approximate tanh may be 1 here

/// The product of two numbers.
Fate times(Fate x, Fate y) {
  const auto either = [x, y](Fate wanted) { return x == wanted || y == wanted; };
  if (either(Fate::nan)) {
    return Fate::nan;
  }
  if (either(Fate::unknown)) {
    return Fate::unknown;
  }
  if (either(Fate::infinite)) {
    return either(Fate::zero) ? Fate::nan : either(Fate::small) ? Fate::unknown : Fate::infinite;
  }
  return either(Fate::zero) ? Fate::zero : Fate::small;
}

/// Of an input.
Fate given(double x) {
  return std::isnan(x)                       ? Fate::nan
         : std::isinf(x)                     ? Fate::infinite
         : is_special(x)                     ? Fate::unknown
         : x == 0                            ? Fate::zero
         : std::fabs(x) >= tolerance::kFlush ? Fate::number
                                             : Fate::small;
}

/// Of a number that dropout leaves out: kernels multiply it by 0, or replace it.
Fate dropped(Fate x) {
  return x == Fate::nan || x == Fate::infinite || x == Fate::unknown ? Fate::unknown : Fate::zero;
}

/// Of two fates and what double makes of them: x + y or x - y.
Fate sum(Fate x, Fate y, double value) {
  if (x == Fate::nan || y == Fate::nan) {
    return Fate::nan;
  }
  if (x == Fate::unknown || y == Fate::unknown) {
    return Fate::unknown;
  }
  return std::isnan(value) ? Fate::nan : std::isinf(value) ? Fate::infinite : Fate::small;
}

const double* row(const HeadRows& rows, std::int64_t i) {
  return rows.data + i * rows.stride;
}

/// True if lse is infinite although q and k are not: a kernel that computes it again finds infinity less infinity.
bool exceeds_fp32(const GradientHead& head, std::int64_t i) {
  const double lse = head.lse[static_cast<std::size_t>(i)];
  return std::isinf(lse) && lse > 0 && !head.special->queries[static_cast<std::size_t>(i)] &&
         std::ranges::find(head.special->keys, true) == head.special->keys.end();
}

/// True if a product of q and a key that it sees may overflow: a kernel that computes the log-sum-exp again may find NaN.
bool lse_may_be_nan(const AttentionGradients& gradients, const GradientHead& head, std::int64_t i) {
  const double size =
      head.errors->queries.norms[static_cast<std::size_t>(i)] * std::max(1.0, std::fabs(gradients.problem().factor()));
  const op::KeyRange keys = gradients.params().visible(i, head.lengths.queries, head.lengths.keys);
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    if (size * head.errors->keys.norms[static_cast<std::size_t>(j)] > kMayOverflow) {
      return true;
    }
  }
  return false;
}

}  // namespace

Fate fate_of_product(const double* x, const double* y, std::int64_t channels) {
  double magnitude = 0, infinities = 0;
  bool unknown = false, infinite = false;
  for (std::int64_t c = 0; c < channels; ++c) {
    const Fate product = times(given(x[c]), given(y[c]));
    if (product == Fate::nan) {
      return Fate::nan;
    }
    unknown = unknown || product == Fate::unknown;
    if (product == Fate::infinite) {
      infinite = true;
      infinities += x[c] * y[c];
    } else if (product != Fate::unknown) {
      magnitude += std::fabs(x[c] * y[c]);
    }
  }
  if (unknown || magnitude > kMayOverflow) {
    return Fate::unknown;
  }
  return !infinite ? Fate::small : std::isnan(infinities) ? Fate::nan : Fate::infinite;
}

Fate fate_of_sink(const AttentionGradients& gradients, const GradientHead& head, std::int64_t i) {
  const op::AttentionParams& p = gradients.params();
  const double sink = gradients.problem().sink(head.index), lse = head.lse[static_cast<std::size_t>(i)];
  const Fate dot = fate_of_product(row(head.gradient, i), row(head.output, i), p.value_channels());
  const double above = sink - lse;
  const Fate weight = std::isnan(sink) || std::isnan(lse) ? Fate::nan
                      : (std::isinf(sink) && sink > 0) || (std::isinf(lse) && lse < 0) || above > kMayExceed ||
                              exceeds_fp32(head, i) || lse_may_be_nan(gradients, head, i)
                          ? Fate::unknown
                      : std::isinf(above)              ? Fate::zero
                      : above > std::log(kSurelyThere) ? Fate::number
                                                       : Fate::small;
  const bool sees = p.visible(i, head.lengths.queries, head.lengths.keys).size() > 0;
  const bool skipped = !sees && (dot == Fate::nan || dot == Fate::infinite);
  return weight == Fate::nan ? Fate::nan : skipped ? Fate::unknown : times(weight, dot);
}

/// What a query's pairs have in common.
struct PairFates::Query {
  const AttentionGradients& all;
  const GradientHead& head;
  std::int64_t i;
  double factor, size, steepness, gradient_size, lse;
  bool special, special_gradient;
  bool exceeds;  ///< exceeds_fp32
  Fate dot;

  Query(const AttentionGradients& gradients, const GradientHead& of, std::int64_t query)
      : all(gradients),
        head(of),
        i(query),
        factor(std::fabs(gradients.problem().factor())),
        size(of.errors->queries.norms[static_cast<std::size_t>(query)]),
        steepness(factor * (gradients.params().softcap == 0 ? 1 : 1 + 2 / gradients.params().softcap)),
        gradient_size(of.errors->gradient.norms[static_cast<std::size_t>(query)]),
        lse(of.lse[static_cast<std::size_t>(query)]),
        special(of.special->queries[static_cast<std::size_t>(query)]),
        special_gradient(of.special->gradient[static_cast<std::size_t>(query)]),
        exceeds(exceeds_fp32(of, query)),
        dot(fate_of_product(row(of.gradient, query), row(of.output, query), gradients.params().value_channels())) {}

  [[nodiscard]] Fate product(std::int64_t j) const {
    const auto at = static_cast<std::size_t>(j);
    if (special || head.special->keys[at]) {
      return fate_of_product(row(head.queries, i), row(head.keys, j), all.params().d);
    }
    return size * head.errors->keys.norms[at] * std::max(1.0, factor) > kMayOverflow ? Fate::unknown : Fate::small;
  }
  /// dp - D, where dropout multiplies dp by `kept`.
  [[nodiscard]] Fate gradient(std::int64_t j, double kept, double value) const {
    const auto at = static_cast<std::size_t>(j);
    Fate dp = gradient_size * head.errors->values.norms[at] * std::max(1.0, kept) > kMayOverflow ? Fate::unknown
                                                                                                 : Fate::small;
    if (special_gradient || head.special->values[at]) {
      dp = fate_of_product(row(head.gradient, i), row(head.values, j), all.params().value_channels());
    }
    dp = kept == 0 ? dropped(dp) : dp;
    return sum(dp, dot, value);
  }
};

Fate PairFates::score(const Query& query, const PairRow& pairs, std::size_t n) {
  const Fate product = query.product(pairs.keys.begin + static_cast<std::int64_t>(n));
  const double s = pairs.scores[n];
  if (product == Fate::nan || product == Fate::unknown) {
    return product;
  }
  const bool huge = std::fabs(pairs.inner[n]) > kMayOverflow && !std::isinf(pairs.inner[n]);
  return std::isnan(s)              ? Fate::nan
         : std::isinf(s)            ? Fate::infinite
         : huge || s > kMayOverflow ? Fate::unknown
                                    : Fate::small;
}

Fate PairFates::weight(Fate score, const Query& query, const PairRow& pairs, std::size_t n) {
  const double s = pairs.scores[n], t = pairs.products[n], lse = query.lse;
  if (score == Fate::nan || std::isnan(lse)) {
    return Fate::nan;
  }
  const double above = s - lse;
  if (score == Fate::unknown || query.exceeds || (std::isinf(lse) && lse < 0) ||
      (std::isinf(s) && s > 0 && std::isfinite(lse))) {
    return Fate::unknown;
  }
  if (std::isnan(above)) {
    return Fate::nan;
  }
  const double a = query.special ? 0 : query.steepness * query.size * pairs.key_norms[n];
  const double slack = kSlackOfProducts * a + kSlackOfScores * (std::fabs(t) + std::fabs(s) + std::fabs(lse));
  if (above > kMayExceed) {  // that an error makes it exceed this is what error bounds are for
    return Fate::unknown;
  }
  // Of scores beyond 1e9: anything from 0 to infinity.
  if (std::isfinite(slack) && slack > kMayExceed && above >= -kVanishes - slack) {
    return Fate::unknown;
  }
  return std::isinf(above) || above < -kVanishes - slack ? Fate::zero
         : above - slack > std::log(kSurelyThere)        ? Fate::number
                                                         : Fate::small;
}

/// Of a gradient of a score as it is multiplied: formats with scales saturate, or do not.
Fate PairFates::stored(const AttentionGradients& gradients, Fate x) {
  return gradients.rounded_gradients().scaled && x == Fate::infinite ? Fate::unknown : x;
}

void PairFates::find(const AttentionGradients& gradients, const GradientHead& head, const PairRow& pairs) {
  const std::size_t count = pairs.weights.size();
  const Query query(gradients, head, pairs.query);
  for (std::vector<Fate>* fates : {&p_, &ds_, &dt_}) {
    fates->assign(count, Fate::small);
  }
  for (std::size_t n = 0; n < count; ++n) {
    const Fate s = score(query, pairs, n);
    p_[n] = weight(s, query, pairs, n);
    const double kept = pairs.kept.empty() ? 1 : pairs.kept[n];
    const std::int64_t key = pairs.keys.begin + static_cast<std::int64_t>(n);
    ds_[n] = stored(gradients, times(p_[n], query.gradient(key, kept, pairs.gradients[n])));
    p_[n] = kept == 0 ? dropped(p_[n]) : p_[n];
    const double slope = pairs.slopes.empty() ? 1 : pairs.slopes[n];
    const Fate flat = s == Fate::nan       ? Fate::nan
                      : s == Fate::unknown ? Fate::unknown
                      : slope == 0         ? Fate::zero
                      : slope < kFlatSlope ? Fate::small
                                           : Fate::number;
    dt_[n] = pairs.slopes.empty() ? ds_[n] : times(ds_[n], flat);
  }
}

PairRow PairFates::numbers(const PairRow& pairs, std::span<const Fate> fates) {
  const auto kept = [&](std::span<const double> all, std::vector<double>& to) {
    to.assign(all.begin(), all.end());
    for (std::size_t n = 0; n < to.size(); ++n) {
      to[n] = fates[n] == Fate::number || fates[n] == Fate::small ? to[n] : 0;
    }
    return std::span<const double>(to);
  };
  const std::span<const double> products = kept(pairs.products, products_);
  std::ranges::replace_if(products_, [](double t) { return std::isinf(t); }, 0.0);  // a cap makes it finite
  return {.query = pairs.query,
          .keys = pairs.keys,
          .products = products,
          .scores = kept(pairs.scores, scores_),
          .inner = kept(pairs.inner, inner_),
          .weights = kept(pairs.weights, weights_),
          .gradients = kept(pairs.gradients, gradients_),
          .kept = pairs.kept,
          .slopes = kept(pairs.slopes, slopes_),
          .key_norms = kept(pairs.key_norms, key_norms_),
          .value_norms = kept(pairs.value_norms, value_norms_)};
}

SumFates::SumFates(std::int64_t rows, std::int64_t channels)
    : channels_(static_cast<std::size_t>(channels)),
      rows_(static_cast<std::size_t>(rows)),
      elements_(static_cast<std::size_t>(rows * channels)) {}

void SumFates::add(std::size_t row, Fate fate, double factor, const double* x) {
  if (fate == Fate::nan) {
    rows_[row] |= kNan;
    return;
  }
  if (fate == Fate::unknown) {
    rows_[row] |= kUnknown;
  }
  for (std::size_t c = 0; c < channels_; ++c) {
    add(row, c, times(fate, given(x[c])));
    if (std::isfinite(x[c]) && std::fabs(factor * x[c]) > kMayOverflow / 10) {
      elements_[at(row, c)] |= kLarge;
    }
  }
}

void SumFates::add(std::size_t row, std::size_t channel, Fate fate) {
  elements_[at(row, channel)] |= fate == Fate::nan ? kNan : fate == Fate::unknown ? kUnknown : 0;
}

Fate SumFates::of(std::size_t row, std::size_t channel, double y) const {
  const auto flags = static_cast<std::uint8_t>(rows_[row] | elements_[at(row, channel)]);
  if ((flags & kNan) != 0) {
    return Fate::nan;
  }
  if ((flags & kUnknown) != 0 || (std::isinf(y) && (flags & kLarge) != 0)) {
    return Fate::unknown;
  }
  return std::isnan(y) ? Fate::nan : std::isinf(y) ? Fate::infinite : Fate::small;
}

}  // namespace numcheck::reference
