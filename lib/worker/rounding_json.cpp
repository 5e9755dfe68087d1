#include "worker/rounding_json.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

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

/// In the order of core::Rounding.
constexpr std::array<std::string_view, 4> kRoundings = {"nearest_even", "nearest_away", "toward_zero",
                                                        "toward_positive"};

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

/// Tensors that were kept by an earlier version have none.
std::vector<int> group_slices_from(const json& object) {
  std::vector<int> slices;
  const auto found = object.find("group_slices");
  if (found == object.end()) {
    return slices;
  }
  if (!found->is_array()) {
    reject("group_slices", "an array");
  }
  for (const json& value : *found) {
    slices.push_back(small(json{{"group_slices", value}}, "group_slices"));
  }
  return slices;
}

}  // namespace

json rounding_to_json(const model::DeclaredRounding& rounding) {
  return {{"slices", rounding.slices},
          {"in_place", rounding.in_place},
          {"bias", rounding.bias},
          {"gelu", rounding.gelu},
          {"attention", to_json(rounding.attention)},
          {"group_slices", rounding.group_slices}};
}

json conversion_to_json(const std::optional<model::Conversion>& conversion) {
  if (!conversion) {
    return {};
  }
  return {{"format", core::dtype_info(conversion->format).name},
          {"rounding", kRoundings.at(static_cast<std::size_t>(conversion->rounding))}};
}

std::optional<model::Conversion> conversion_from_json(const json& object) {
  if (object.is_null()) {
    return std::nullopt;
  }
  const std::optional<core::Dtype> format = core::parse_dtype(text(object, "format"));
  if (!format) {
    reject("format", "a format");
  }
  const auto* found = std::ranges::find(kRoundings, text(object, "rounding"));
  if (found == kRoundings.end()) {
    reject("rounding", "a way to round");
  }
  return model::Conversion{*format, static_cast<core::Rounding>(found - kRoundings.begin())};
}

model::DeclaredRounding rounding_from_json(const json& object) {
  return {small(object, "slices"),
          boolean(object, "in_place"),
          boolean(object, "bias"),
          boolean(object, "gelu"),
          attention_rounding_from(member(object, "attention")),
          group_slices_from(object)};
}

}  // namespace numcheck::worker
