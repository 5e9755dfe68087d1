#include "reference/moe.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "op/moe.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {
namespace {

/// A permutation of the copies by their draws; the copies of the largest draws are dropped.
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

/// A sum whose factors, products and partial sums are rounded to one format, with fused or separate operations.
struct RoundedSum {
  double y = 0;      ///< the exact sum
  double bound = 0;  ///< of |computed - y|
  double variance = 0;
  double unit;  ///< u of the format
  double tiny;  ///< its smallest subnormal

  void add(double factor, double value, bool weighted) {
    const double product = factor * value;
    const double own = weighted ? 2 * unit * std::fabs(product) + tiny : 0;  // the probability and the product
    y += product;
    bound += own;
    bound += unit * (std::fabs(y) + bound) + tiny;
    constexpr double kLogUniform = 0.18;
    const double step = unit * unit * ((weighted ? 2 : 0) * product * product + y * y);
    variance += kLogUniform * step + tiny * tiny;
  }
};

op::Values unpermute(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::MoeUnpermuteParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const op::Operand& map = op::operand_named(request.inputs, "row_id_map");
  const op::Operand* probs = op::find_operand(request.inputs, "probs");
  const core::DtypeInfo& format = core::dtype_info(x.dtype);
  const auto hidden = static_cast<std::size_t>(p.hidden);
  const auto tokens = static_cast<std::size_t>(p.tokens);
  TrackedOutput y("y", tokens * hidden, request.values_only);
  core::parallel_for(tokens, [&](std::size_t token) {
    for (std::size_t j = 0; j < hidden; ++j) {
      RoundedSum sum{.unit = format.unit_roundoff, .tiny = format.min_subnormal};
      for (std::size_t k = 0; k < static_cast<std::size_t>(p.topk); ++k) {
        const double place = map.data[k * tokens + token];
        if (place >= 0) {
          const double weight = probs == nullptr ? 1.0 : probs->data[token * static_cast<std::size_t>(p.topk) + k];
          sum.add(weight, x.data[static_cast<std::size_t>(place) * hidden + j], probs != nullptr);
        }
      }
      y.set(token * hidden + j, sum.y, sum.bound, sum.variance);
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
  return reference_of(&permute, &derive_map<op::MoePermuteParams>, "moe_permute-1");
}

op::Reference moe_unpermute_reference() {
  return reference_of(&unpermute, &derive_map<op::MoeUnpermuteParams>, "moe_unpermute-1");
}

}  // namespace numcheck::reference
