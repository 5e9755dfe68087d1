// Mistakes in masks that a device draws: planted in the mask that it drew, and in what it made of it.
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/buffer.hpp"
#include "op/attention_dropout.hpp"
#include "op/dropout.hpp"
#include "reference/mistake_list.hpp"
#include "reference/mistakes.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kBits = 8;

void add_output(op::Values& values, std::string_view port, core::Buffer<double> numbers) {
  op::OutputValues& output = values.outputs.emplace_back();
  output.port = port;
  output.value = std::move(numbers);
}

/// y and mask of kept elements times `scale`, with `keeps(i, drawn)` in place of the drawn bit.
template <class Keeps>
op::Values redrawn(const op::ReferenceRequest& request, double scale, Keeps keeps) {
  const op::Operand& x = op::operand_named(request.inputs, "x");
  const op::Operand& mask = op::operand_named(request.inputs, "mask");
  core::Buffer<double> y(x.elements()), bits(mask.elements());
  for (std::size_t byte = 0; byte < bits.size(); ++byte) {
    unsigned kept = 0;
    for (std::size_t bit = 0; bit < kBits; ++bit) {
      const std::size_t i = byte * kBits + bit;
      const bool keep = keeps(i, (static_cast<unsigned>(mask.data[byte]) >> bit & 1U) != 0);
      kept |= (keep ? 1U : 0U) << bit;
      y[i] = keep ? x.data[i] * scale : 0;
    }
    bits[byte] = kept;
  }
  op::Values values;
  add_output(values, "y", std::move(y));
  add_output(values, "mask", std::move(bits));
  return values;
}

bool as_drawn(std::size_t, bool drawn) {
  return drawn;
}

/// Keeps every other one of those that are dropped.
class HalfOfThem {
 public:
  bool operator()(std::size_t, bool drawn) { return drawn || ++dropped_ % 2 == 0; }

 private:
  std::size_t dropped_ = 0;
};

double probability(const op::ReferenceRequest& request) {
  return op::from_params<op::DropoutParams>(*request.params).p;
}

double scale_of(const op::ReferenceRequest& request) {
  return 1 / (1 - probability(request));
}

op::Values unscaled(const op::ReferenceRequest& request) {
  return redrawn(request, 1, as_drawn);
}

op::Values scaled_by_p(const op::ReferenceRequest& request) {
  return redrawn(request, 1 / probability(request), as_drawn);
}

op::Values scaled_by_share(const op::ReferenceRequest& request) {
  const auto p = op::from_params<op::DropoutParams>(*request.params);
  return redrawn(request, 1 / (1 - p.dropped_share()), as_drawn);
}

op::Values all_kept(const op::ReferenceRequest& request) {
  return redrawn(request, scale_of(request), [](std::size_t, bool) { return true; });
}

op::Values half_dropped(const op::ReferenceRequest& request) {
  return redrawn(request, scale_of(request), HalfOfThem());
}

/// p is the probability of an element to be kept; what is drawn is negated for that.
op::Values kept_with_p(const op::ReferenceRequest& request) {
  const double p = probability(request);
  return redrawn(request, p == 0 ? 0 : 1 / p, [](std::size_t, bool drawn) { return !drawn; });
}

op::Values inverted_mask(const op::ReferenceRequest& request) {
  op::Values values = redrawn(request, scale_of(request), as_drawn);
  constexpr double kAllBits = 255;
  for (double& byte : values.outputs.back().value.span()) {
    byte = kAllBits - byte;
  }
  return values;
}

/// The mask of attention with `keeps(i, drawn)` in place of the weights that are drawn.
template <class Keeps>
op::Values redrawn_weights(const op::ReferenceRequest& request, Keeps keeps) {
  const op::Operand& mask = op::operand_named(request.inputs, "dropout_mask");
  core::Buffer<double> weights(mask.elements());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double drawn = mask.data[i];
    weights[i] = drawn != 0 && drawn != 1 ? drawn : keeps(i, drawn == 1) ? 1 : 0;
  }
  op::Values values;
  add_output(values, "dropout_mask", std::move(weights));
  return values;
}

op::Values half_of_weights(const op::ReferenceRequest& request) {
  return redrawn_weights(request, HalfOfThem());
}

op::Values weights_kept_with_p(const op::ReferenceRequest& request) {
  return redrawn_weights(request, [](std::size_t, bool drawn) { return !drawn; });
}

}  // namespace

std::vector<op::Mistake> dropout_fwd_mistakes(const op::Params& params, const op::Mode&) {
  constexpr double kEven = 0.5;
  Mistakes<op::DropoutParams> mistakes(params);
  if (mistakes.p.p > 0) {
    mistakes.add_instead("scale_missing", "1 / (1 - p) from 1", &unscaled);
    mistakes.add_instead("mask_inverted", "bits of what is kept from bits of what is dropped", &inverted_mask);
  }
  if (mistakes.p.p > 0 && mistakes.p.p != kEven) {
    mistakes.add_instead("scale_by_p", "1 / (1 - p) from 1 / p", &scaled_by_p);
  }
  if (mistakes.p.dropped_share() != mistakes.p.p) {
    mistakes.add_instead("scale_of_share", "1 / (1 - p) from one over the share that is kept", &scaled_by_share);
  }
  if (mistakes.p.dropped_share() > 0) {
    mistakes.add_instead("nothing_dropped", "the mask from one that keeps everything", &all_kept);
    mistakes.add_instead("share_half", "p from half of p", &half_dropped);
  }
  if (mistakes.p.p != kEven) {
    mistakes.add_instead("kept_with_p", "p from 1 - p", &kept_with_p);
  }
  return mistakes.take();
}

std::vector<op::Mistake> attention_dropout_mistakes(const op::Params& params, const op::Mode&) {
  constexpr double kEven = 0.5;
  Mistakes<op::AttentionDropoutParams> mistakes(params);
  mistakes.add_instead("share_half", "dropout from half of it", &half_of_weights);
  if (mistakes.p.dropout != kEven) {
    mistakes.add_instead("kept_with_p", "dropout from 1 - dropout", &weights_kept_with_p);
  }
  return mistakes.take();
}

}  // namespace numcheck::reference
