// The window of attention that the outputs of its first and last query tell by themselves.
#pragma once

#include <cstdint>
#include <optional>

#include "diagnose/hypothesis.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {

struct Windows {
  std::int64_t left = -1, right = -1;  ///< -1: all keys of that side

  [[nodiscard]] bool operator==(const Windows&) const = default;
};

/// Which keys the last query sees says where the window begins, and those of the first one where it ends: with both sides, all
/// queries may be wrong, so that where errors begin tells nothing. Of o without a mask, biases and the like; nothing of others.
[[nodiscard]] std::optional<Windows> windows_of_output(const Evidence& evidence, const op::AttentionParams& p);

}  // namespace numcheck::diagnose
