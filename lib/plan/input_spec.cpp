// Distributions of the inputs.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plan/settings.hpp"
#include "plan/values.hpp"

namespace numcheck::plan {
namespace {

std::vector<std::string_view> distribution_names() {
  std::vector<std::string_view> names;
  for (const data::DistributionInfo& info : data::all_distributions()) {
    names.push_back(info.name);
  }
  return names;
}

bool is_field(const std::vector<op::Field>& fields, std::string_view name) {
  return std::ranges::find(fields, name, &op::Field::name) != fields.end();
}

/// The distribution that an inputs or port object names; "normal" if it names none.
const data::DistributionInfo* decode_name(const Node& object, Reporter& reporter) {
  const Node* name = object.find("distribution");
  if (name == nullptr) {
    return data::find_distribution("normal");
  }
  const std::vector<std::string_view> names = distribution_names();
  if (!name->is(Node::Kind::text)) {
    wrong_kind(*name, "\"distribution\"", "a string", reporter, suggestion("", names, "distributions are:"));
    return nullptr;
  }
  const data::DistributionInfo* info = data::find_distribution(name->text);
  if (info == nullptr) {
    reporter.error(*name, "unknown distribution " + quote(name->text),
                   {suggestion(name->text, names, "distributions are:"), {}});
  }
  return info;
}

std::optional<data::Distribution> decode_distribution(const Node& object, const data::DistributionInfo& info,
                                                      Reporter& reporter) {
  data::Distribution distribution = data::make_distribution(info.name);
  const std::vector<op::Field>& fields = info.fields();
  bool complete = true;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Node* node = object.find(fields[i].name);
    if (node == nullptr) {
      if (fields[i].required) {
        reporter.error(object, fmt::format("{} needs {}: {}", info.name, quote(fields[i].name), fields[i].doc));
        complete = false;
      }
      continue;
    }
    std::optional<op::Value> value = decode_scalar(*node, fields[i], reporter);
    complete = complete && value.has_value();
    if (value) {
      distribution.params[i] = std::move(*value);
    }
  }
  return complete ? std::optional(std::move(distribution)) : std::nullopt;
}

/// A key that is not a parameter and whose value is not an object: a misspelt parameter rather than a port.
void unknown_parameter(const Member& member, const data::DistributionInfo& info, Reporter& reporter) {
  std::vector<std::string_view> names = {"distribution"};
  for (const op::Field& field : info.fields()) {
    names.push_back(field.name);
  }
  reporter.error(member, fmt::format("{} has no parameter {}", info.name, quote(member.key)),
                 {suggestion(member.key, names, fmt::format("inputs of {} have:", info.name)) +
                      "; a port takes an object of its own",
                  {}});
}

std::optional<data::Distribution> decode_port(const Member& port, Reporter& reporter) {
  const data::DistributionInfo* info = decode_name(port.value, reporter);
  if (info == nullptr) {
    return {};
  }
  std::vector<std::string_view> legal = {"distribution"};
  for (const op::Field& field : info->fields()) {
    legal.push_back(field.name);
  }
  check_keys(port.value, legal, info->name, reporter);
  return decode_distribution(port.value, *info, reporter);
}

/// The exact leg is a property of all inputs together: their integers share one budget.
bool check_exact(const Member& port, const InputSpec& spec, const data::Distribution& distribution,
                 Reporter& reporter) {
  if (spec.exact_leg() == (distribution.name == "exact")) {
    return true;
  }
  if (spec.exact_leg()) {
    reporter.error(port, fmt::format("port {} cannot be {} in the exact leg", quote(port.key), distribution.name),
                   {"with \"distribution\": \"exact\" the integers of all inputs share one budget", {}});
  } else {
    reporter.error(port, fmt::format("port {} cannot be exact on its own", quote(port.key)),
                   {R"(write {"distribution": "exact"} for all inputs)", {}});
  }
  return false;
}

}  // namespace

std::vector<const Member*> port_members(const Node& node) {
  std::vector<const Member*> ports;
  for (const Member& member : node.members) {
    if (member.key != "distribution" && member.key != "$comment" && member.value.is(Node::Kind::object)) {
      ports.push_back(&member);
    }
  }
  return ports;
}

std::optional<InputSpec> decode_inputs(const Node& node, Reporter& reporter) {
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "\"inputs\"", "an object or a list of objects", reporter,
               node.is(Node::Kind::text) ? fmt::format("write {{\"distribution\": {}}}", quote(node.text))
                                         : R"({"distribution": "normal"})");
    return {};
  }
  const std::size_t errors = reporter.error_count();
  const data::DistributionInfo* info = decode_name(node, reporter);
  InputSpec spec;
  if (info != nullptr) {
    for (const Member& member : node.members) {
      if (member.key != "distribution" && member.key != "$comment" && !member.value.is(Node::Kind::object) &&
          !is_field(info->fields(), member.key)) {
        unknown_parameter(member, *info, reporter);
      }
    }
    if (std::optional<data::Distribution> common = decode_distribution(node, *info, reporter)) {
      spec.common = std::move(*common);
    }
  }
  for (const Member* port : port_members(node)) {
    if (info != nullptr && is_field(info->fields(), port->key)) {
      continue;  // reported as a parameter of the wrong type
    }
    std::optional<data::Distribution> distribution = decode_port(*port, reporter);
    if (distribution && info != nullptr && check_exact(*port, spec, *distribution, reporter) &&
        !(*distribution == spec.common)) {
      spec.ports.emplace(port->key, std::move(*distribution));
    }
  }
  return reporter.error_count() == errors ? std::optional(std::move(spec)) : std::nullopt;
}

}  // namespace numcheck::plan
