#include "worker/rounding_json.hpp"

#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "worker/json_fields.hpp"

namespace numcheck::worker {
namespace {

using nlohmann::json;
using namespace fields;

using AttentionFlag = std::pair<const char*, bool model::AttentionRounding::*>;
constexpr std::array<AttentionFlag, 9> kAttentionFlags{{
    {"scores", &model::AttentionRounding::scores},
    {"weights", &model::AttentionRounding::weights},
    {"dropped_weights", &model::AttentionRounding::dropped_weights},
    {"sink", &model::AttentionRounding::sink},
    {"score_gradients", &model::AttentionRounding::score_gradients},
    {"head_gradients", &model::AttentionRounding::head_gradients},
    {"scaled_bias", &model::AttentionRounding::scaled_bias},
    {"bias_sum", &model::AttentionRounding::bias_sum},
    {"approximate_tanh", &model::AttentionRounding::approximate_tanh},
}};

json to_json(const model::AttentionRounding& rounding) {
  json object = json::object();
  for (const auto& [name, flag] : kAttentionFlags) {
    object[name] = rounding.*flag;
  }
  return object;
}

model::AttentionRounding attention_rounding_from(const json& object) {
  model::AttentionRounding rounding;
  for (const auto& [name, flag] : kAttentionFlags) {
    rounding.*flag = boolean(object, name);
  }
  return rounding;
}

}  // namespace

json rounding_to_json(const model::DeclaredRounding& rounding) {
  return {{"slices", rounding.slices},
          {"in_place", rounding.in_place},
          {"bias", rounding.bias},
          {"gelu", rounding.gelu},
          {"attention", to_json(rounding.attention)}};
}

model::DeclaredRounding rounding_from_json(const json& object) {
  return {small(object, "slices"), boolean(object, "in_place"), boolean(object, "bias"), boolean(object, "gelu"),
          attention_rounding_from(member(object, "attention"))};
}

}  // namespace numcheck::worker
