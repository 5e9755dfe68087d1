#include "reference/attention_score_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/parallel.hpp"
#include "data/scaling.hpp"
#include "op/attention_bwd.hpp"
#include "reference/dequantised.hpp"

namespace numcheck::reference {
namespace {

double largest_of_head(const AttentionGradients& g, const GradientHead& head) {
  GradientTile tile(g);
  double largest = 0;
  for (std::int64_t i = 0; i < head.lengths.queries; i += kTile) {
    const Positions queries{i, std::min(i + kTile, head.lengths.queries)};
    for (std::int64_t j = 0; j < head.lengths.keys; j += kTile) {
      if (tile.load(head, queries, {j, std::min(j + kTile, head.lengths.keys)}, {})) {
        for (const double x : tile.dt()) {
          largest = std::fmax(largest, std::fabs(x));
        }
      }
    }
  }
  return largest;
}

}  // namespace

double largest_score_gradient(const AttentionGradients& g) {
  const op::AttentionParams& p = g.params();
  std::vector<double> largest(static_cast<std::size_t>(p.batches * p.heads));
  core::parallel_for(largest.size(), [&](std::size_t task) {
    const auto head = static_cast<std::int64_t>(task);
    largest[task] = largest_of_head(g, g.head(head / p.heads, head % p.heads));
  });
  return std::fabs(g.problem().factor()) * *std::ranges::max_element(largest);
}

void derive_gradient_scale(const op::DeriveRequest& request, std::span<double> values) {
  if (request.port->name == "dp_scale_inv") {
    const auto scale = static_cast<float>(op::operand_named(request.inputs, "dp_scale").data[0]);
    values[0] = static_cast<double>(data::scale_inverse(scale));
    return;
  }
  const Dequantised inputs(request.inputs);
  const AttentionGradients g(op::from_params<op::AttentionBwdParams>(*request.params), inputs.operands(), true);
  const core::Dtype format = op::operand_named(request.inputs, "do").dtype;
  values[0] = static_cast<double>(data::scale_from_amax(largest_score_gradient(g), format));
}

}  // namespace numcheck::reference
