#include "kernels/cudnn/attention_gates.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace numcheck::kernels::cudnn {
namespace {

using op::AttentionParams;

bool is_bottom_right(const AttentionParams& p) {
  return p.mask == "causal_bottom_right" || p.mask == "padding_causal_bottom_right";
}

std::string head_gate(const AttentionParams& p, const AttentionTarget& target) {
  const std::int64_t width = p.value_channels();
  const std::int64_t widest = std::max(p.d, width);
  if (p.d % 8 != 0 || width % 8 != 0) {
    return fmt::format("head dimensions must be multiples of 8 (d is {}, dv is {})", p.d, width);
  }
  if (target.forward) {
    return {};
  }
  const int major = target.sm / 10;
  const bool latent = p.d == 192 && width == 128;
  if (major == 9) {
    if (widest > 256) {
      return fmt::format("the backward pass on sm_90 takes head dimensions of up to 256 (d is {}, dv is {})", p.d,
                         width);
    }
    if (target.version >= 91100 && p.d != width && std::min(p.d, width) >= 128 && !latent) {
      return fmt::format(
          "TransformerEngine blocks different head dimensions from 128 on in the backward pass on sm_90 "
          "as wrong since 9.11, except 192 and 128 (d is {}, dv is {})",
          p.d, width);
    }
  } else if (widest > 128 && !(major == 10 && latent)) {
    return fmt::format("the backward pass on sm_{} takes head dimensions of up to 128 (d is {}, dv is {})", target.sm,
                       p.d, width);
  }
  return {};
}

std::string mask_gate(const AttentionParams& p, const AttentionTarget& target) {
  const bool added = p.bias != "none";
  if (is_bottom_right(p) && !p.has_lengths() && p.sq > p.sk) {
    return fmt::format("a causal mask from the bottom right needs at most as many queries as keys ({} and {})", p.sq,
                       p.sk);
  }
  if (is_bottom_right(p) && added) {
    return "a causal mask from the bottom right goes with no bias";
  }
  if (p.window_left >= 0 && !p.has_lengths() && p.sq > p.sk) {
    return fmt::format("a window needs at most as many queries as keys ({} and {})", p.sq, p.sk);
  }
  if (target.version == 91400 && p.window_left >= 0 && !p.is_causal() && p.sk > 1024) {
    return "9.14.0 is known to be wrong with a window, no causal mask and more than 1024 keys";
  }
  return {};
}

std::string score_gate(const AttentionParams& p, const AttentionTarget& target) {
  const int major = target.sm / 10;
  if (p.bias == "alibi" && (p.mask != "causal" && p.mask != "padding_causal")) {
    return "alibi needs a causal mask from the top left";
  }
  if (p.bias == "post_scale" && p.has_lengths()) {
    return "TransformerEngine passes no bias together with padding";
  }
  if (p.bias == "pre_scale") {
    return target.forward ? "TransformerEngine passes no bias before scaling"
                          : "the gradient of a bias is taken of scores, not of what is scaled";
  }
  if (p.softcap != 0) {
    return !target.forward && (major == 8 || major == 12)
               ? fmt::format("there is no derivative of a cap on sm_{}", target.sm)
               : "TransformerEngine passes no cap";
  }
  if (p.softmax != "vanilla" && target.version < 91301) {
    return "a sink needs 9.13.1";
  }
  if (p.softmax != "vanilla" && target.forward && p.sq == 1) {
    return "a sink needs more than one query";
  }
  return {};
}

}  // namespace

std::string attention_gate(const AttentionParams& p, const AttentionTarget& target) {
  if (target.version < kFirstAttentionVersion) {
    return "attention needs 9.10.2: 9.10.0 and 9.10.1 are known to be wrong, and older ones take other graphs";
  }
  for (auto gate : {&head_gate, &mask_gate, &score_gate}) {
    if (std::string found = gate(p, target); !found.empty()) {
      return found;
    }
  }
  if (!target.forward && p.sq == 1 && p.sk == 1) {
    return "the backward pass needs more than one query or key";
  }
  return {};
}

}  // namespace numcheck::kernels::cudnn
