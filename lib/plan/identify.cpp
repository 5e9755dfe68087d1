#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/strings.hpp"
#include "plan/case.hpp"

namespace numcheck::plan {
namespace {

void append(std::string& list, std::string_view item) {
  if (!list.empty()) {
    list += ',';
  }
  list += item;
}

/// "m=128,n=768,tb=1": required fields always, others if they differ from their default.
std::string params_segment(const Case& c) {
  std::string segment;
  const std::vector<op::Field>& fields = c.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].required || c.params[i] != fields[i].fallback) {
      append(segment, fmt::format("{}={}", fields[i].tag, op::value_text(c.params[i])));
    }
  }
  return segment.empty() ? "default" : segment;
}

/// "outliers(fraction=0.01)": parameters that differ from their default.
std::string distribution_text(const data::Distribution& distribution) {
  std::string list;
  if (const data::DistributionInfo* info = data::find_distribution(distribution.name)) {
    const std::vector<op::Field>& fields = info->fields();
    for (std::size_t i = 0; i < fields.size() && i < distribution.params.size(); ++i) {
      if (fields[i].required || distribution.params[i] != fields[i].fallback) {
        append(list, fmt::format("{}={}", fields[i].name, op::value_text(distribution.params[i])));
      }
    }
  }
  return list.empty() ? distribution.name : fmt::format("{}({})", distribution.name, list);
}

std::string inputs_segment(const InputSpec& inputs) {
  std::string segment;
  if (const std::string common = distribution_text(inputs.common); common != "normal") {
    segment = common;
  }
  for (const auto& [port, distribution] : inputs.ports) {
    append(segment, fmt::format("{}={}", port, distribution_text(distribution)));
  }
  return segment;
}

std::string environment_segment(const Environment& environment) {
  std::string segment;
  for (const auto& [name, value] : environment) {
    append(segment, fmt::format("{}={}", name, value.value_or("unset")));
  }
  return segment;
}

}  // namespace

const data::Distribution& InputSpec::of(std::string_view port) const {
  const auto found = ports.find(std::string(port));
  return found == ports.end() ? common : found->second;
}

bool XFail::operator==(const XFail& other) const {
  const auto content = [](const XFail& x) { return std::tie(x.reason, x.expires, x.where, x.cause, x.error, x.link); };
  return content(*this) == content(other);
}

std::vector<XFail> known_issues_on(const Case& c, const std::optional<DeviceFacts>& device) {
  std::vector<XFail> issues = c.known_issues;
  std::erase_if(issues, [&](const XFail& issue) {
    return device ? !holds(issue.where, *device) : issue.where != DeviceCondition{};
  });
  return issues;
}

void identify(Case& c) {
  c.id = fmt::format("{}/{}/{}/{}", c.op->name, params_segment(c), c.mode->name, c.backend);
  if (c.algorithms.kind == AlgorithmSpec::Kind::all) {
    c.id += "/algorithms=all";
  } else if (c.algorithms.kind == AlgorithmSpec::Kind::top) {
    c.id += fmt::format("/algorithms=top:{}", c.algorithms.top);
  }
  if (const std::string inputs = inputs_segment(c.inputs); !inputs.empty()) {
    c.id += '/' + inputs;
  }
  if (c.seed_in_id) {
    c.id += fmt::format("/seed={}", c.seed);
  }
  if (const std::string environment = environment_segment(c.environment); !environment.empty()) {
    c.id += '/' + environment;
  }
  nlohmann::json json = case_to_json(c);
  json.erase("seed_in_id");  // it names the case, it does not change its numbers
  // Without defaults, as in the identifier: a parameter added to an op later orphans no baseline.
  const std::vector<op::Field>& fields = c.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (!fields[i].required && c.params[i] == fields[i].fallback) {
      json["params"].erase(std::string(fields[i].name));
    }
  }
  c.digest = core::digest_of(json.dump());
}

}  // namespace numcheck::plan
