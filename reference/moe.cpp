#include "op/moe.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// A permutation of the copies by their draws; the copies with the largest draws are dropped.
template <class P>
void derive_map(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<P>(*request.params);
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [values](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  const std::size_t kept = values.size() - static_cast<std::size_t>(p.dropped);
  for (std::size_t place = 0; place < order.size(); ++place) {
    values[order[place]] = place < kept ? static_cast<double>(place) : -1.0;
  }
}

op::Values permute(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::MoePermuteParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const op::Operand& map = op::operand_named(request.inputs, "row_id_map");
  const auto hidden = static_cast<std::size_t>(p.hidden);
  op::OutputValues y;
  y.port = "y";
  y.value = core::Buffer<double>(static_cast<std::size_t>(p.topk * p.tokens - p.dropped) * hidden);
  y.bit_exact = true;
  core::parallel_for(map.elements(), [&](std::size_t copy) {
    if (map.data[copy] >= 0) {
      const std::size_t token = copy % static_cast<std::size_t>(p.tokens);
      std::copy_n(x.data + token * hidden, hidden, y.value.data() + static_cast<std::size_t>(map.data[copy]) * hidden);
    }
  });
  op::Values result;
  result.outputs.push_back(std::move(y));
  return result;
}

std::vector<std::int64_t> permuted_from(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::MoePermuteParams>(*request.params);
  const op::Operand& map = op::operand_named(request.inputs, "row_id_map");
  std::vector<std::int64_t> sources(static_cast<std::size_t>((p.topk * p.tokens - p.dropped) * p.hidden));
  core::parallel_for(map.elements(), [&](std::size_t copy) {
    for (std::int64_t j = 0; map.data[copy] >= 0 && j < p.hidden; ++j) {
      const std::int64_t token = static_cast<std::int64_t>(copy) % p.tokens;
      sources[static_cast<std::size_t>(static_cast<std::int64_t>(map.data[copy]) * p.hidden + j)] =
          token * p.hidden + j;
    }
  });
  return sources;
}

/// One expert's part of an element.
struct Part {
  double factor;
  double value;
};

/// The parts of one element of y, k ascending.
class Parts {
 public:
  explicit Parts(const op::MoeUnpermuteParams& p, const op::ReferenceRequest& request)
      : hidden_(static_cast<std::size_t>(p.hidden)),
        tokens_(static_cast<std::size_t>(p.tokens)),
        topk_(static_cast<std::size_t>(p.topk)),
        x_(op::operand_named(request.inputs, "x").data),
        map_(op::operand_named(request.inputs, "row_id_map").data),
        probs_(op::find_operand(request.inputs, "probs")) {}

  template <class Use>
  void for_each(std::size_t token, std::size_t column, const Use& use) const {
    for (std::size_t k = 0; k < topk_; ++k) {
      const double place = map_[k * tokens_ + token];
      if (place >= 0) {
        use(Part{probs_ == nullptr ? 1.0 : probs_->data[token * topk_ + k],
                 x_[static_cast<std::size_t>(place) * hidden_ + column]});
      }
    }
  }
  [[nodiscard]] bool weighted() const { return probs_ != nullptr; }

 private:
  std::size_t hidden_, tokens_, topk_;
  const double* x_;
  const double* map_;
  const op::Operand* probs_;
};

/// A sum whose factors, products and partial sums are rounded to one format, with fused or separate operations.
struct RoundedSum {
  double y = 0;         ///< the exact sum
  double bound = 0;     ///< of |computed - y|
  double absolute = 0;  ///< sum of the terms' magnitudes
  double variance = 0;
  double unit;       ///< u of the format
  double tiny;       ///< its smallest subnormal
  double largest;    ///< its largest number
  bool tame = true;  ///< nothing on the way can leave the format's range

  void add(const Part& part, bool weighted) {
    const auto [factor, value] = part;
    const double product = factor * value;
    // The probability and the product; a subnormal probability errs by half of `tiny`, which the value multiplies.
    const double lost = weighted ? tiny / 2 * std::fabs(value) : 0;
    const double own = weighted ? 2 * unit * std::fabs(product) + lost + tiny : 0;
    y += product;
    absolute += std::fabs(product);
    bound += own;
    bound += unit * (std::fabs(y) + bound) + tiny;
    constexpr double kLogUniform = 0.18;
    tame = tame && std::fabs(factor) < largest && std::fabs(value) <= largest && std::fabs(product) + own < largest &&
           std::fabs(y) + bound < largest;
    const double step = unit * unit * ((weighted ? 2 : 0) * product * product + y * y);
    const bool subnormal = weighted && std::fabs(factor) < tiny / unit;
    variance += kLogUniform * step + tiny * tiny + (subnormal ? lost * lost / 3 : 0);
  }
};

/// The same sum as a device computes it, with a fused or a separate multiplication.
double in_format(const Parts& parts, std::size_t token, std::size_t column, core::Dtype format, bool fused) {
  double sum = 0;
  parts.for_each(token, column, [&](const Part& part) {
    const double product = core::round_to(part.factor, format) * part.value;
    sum = core::round_to(sum + (fused ? product : core::round_to(product, format)), format);
  });
  return sum;
}

/// What becomes of an element if an intermediate result is not finite. NaN yardsticks mean that it is not checked where
/// that depends on the multiplication.
void settle(double separate, double fused, std::size_t at, TrackedOutput& y) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const bool both_nan = std::isnan(separate) && std::isnan(fused);
  if (both_nan || (std::isinf(separate) && separate == fused)) {
    y.set(at, separate, kNan, kNan);
  } else {
    y.set(at, 0, kNan, kNan);
  }
}

op::Values unpermute(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::MoeUnpermuteParams>(*request.params);
  const core::Dtype dtype = op::operand_named(request.inputs, "x").dtype;
  const core::DtypeInfo& format = core::dtype_info(dtype);
  const Parts parts(p, request);
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const auto tokens = static_cast<std::size_t>(p.tokens);
  TrackedOutput y("y", tokens * hidden, request.values_only);
  y.keep_terms(static_cast<std::size_t>(p.topk));
  core::parallel_for(tokens, [&](std::size_t token) {
    for (std::size_t j = 0; j < hidden; ++j) {
      RoundedSum sum{.unit = format.unit_roundoff, .tiny = format.min_subnormal, .largest = format.max_finite};
      parts.for_each(token, j, [&](const Part& part) { sum.add(part, parts.weighted()); });
      if (sum.tame) {
        y.set(token * hidden + j, sum.y, sum.bound, sum.variance);
        y.set_terms(token * hidden + j, sum.absolute);
      } else {
        settle(in_format(parts, token, j, dtype, false), in_format(parts, token, j, dtype, true), token * hidden + j,
               y);
      }
    }
  });
  op::Values result;
  y.values().reduction = static_cast<double>(p.topk);
  result.outputs.push_back(std::move(y).take());
  return result;
}

op::Reference reference_of(op::Values (*values)(const op::ReferenceRequest&),
                           void (*derive)(const op::DeriveRequest&, std::span<double>), std::string_view version) {
  op::Reference reference;
  reference.values = values;
  reference.derive = derive;
  reference.version = version;
  return reference;
}

}  // namespace

op::Reference moe_permute_reference() {
  op::Reference reference = reference_of(&permute, &derive_map<op::MoePermuteParams>, "moe_permute-1");
  reference.moved = &permuted_from;
  reference.mistakes = &moe_permute_mistakes;
  reference.defines_bits = true;
  return reference;
}

op::Reference moe_unpermute_reference() {
  op::Reference reference = reference_of(&unpermute, &derive_map<op::MoeUnpermuteParams>, "moe_unpermute-2");
  reference.mistakes = &moe_unpermute_mistakes;
  return reference;
}

}  // namespace numcheck::reference
