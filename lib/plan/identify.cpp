#include "plan/identify.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string_view>
#include <tuple>
#include <variant>

#include <fmt/format.h>

#include "plan/case.hpp"
#include "plan/case_json.hpp"

namespace numcheck::plan {
namespace {

void append(std::string& list, std::string_view item) {
  if (!list.empty()) {
    list += ',';
  }
  list += item;
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

/// Indices of the op's fields by name, the order of the members of a JSON object.
std::vector<std::size_t> sorted_fields(const op::Op& op) {
  std::vector<std::size_t> order(op.fields().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&op](std::size_t i) { return op.fields()[i].name; });
  return order;
}

bool has_same_signs(const data::Distribution& a, const data::Distribution& b) {
  return std::ranges::equal(a.params, b.params, [](const op::Value& x, const op::Value& y) {
    const auto *one = std::get_if<double>(&x), *other = std::get_if<double>(&y);
    return one == nullptr || other == nullptr || std::signbit(*one) == std::signbit(*other);
  });
}

/// Whether equal inputs are spelled alike: 0 and -0 are equal, and are not.
bool are_spelled_alike(const InputSpec& a, const InputSpec& b) {
  return has_same_signs(a.common, b.common) && std::ranges::equal(a.ports, b.ports, [](const auto& x, const auto& y) {
           return has_same_signs(x.second, y.second);
         });
}

bool is_listed(const op::Field& field, const op::Value& value) {
  return field.required || value != field.fallback;
}

}  // namespace

/// "m=128,n=768,tb=1": required fields always, others if they differ from their default.
void Identifier::add_params(const Case& c) {
  const std::vector<op::Field>& fields = c.op->fields();
  const std::size_t begin = id_.size();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (is_listed(fields[i], c.params[i])) {
      id_ += id_.size() == begin ? "" : ",";
      id_ += fields[i].tag;
      id_ += '=';
      op::append_text(c.params[i], id_);
    }
  }
  id_ += id_.size() == begin ? "default" : "";
}

/// Without defaults, as in the identifier: a parameter added to an op later orphans no baseline.
void Identifier::add_params_as_json(const Case& c) {
  const std::vector<op::Field>& fields = c.op->fields();
  json_ += "\"params\":{";
  bool is_first = true;
  for (const std::size_t i : order_) {
    if (is_listed(fields[i], c.params[i])) {
      json_ += is_first ? "\"" : ",\"";
      json_ += fields[i].name;
      json_ += "\":";
      append_json(c.params[i], json_);
      is_first = false;
    }
  }
  json_ += '}';
}

void Identifier::take_op(const Case& c) {
  if (c.op != op_) {
    op_ = c.op;
    order_ = sorted_fields(*c.op);
  }
}

void Identifier::take_settings(const Case& c) {
  if (known_ && c.inputs == inputs_ && are_spelled_alike(c.inputs, inputs_) && c.environment == environment_ &&
      c.algorithms == algorithms_ && c.backend == backend_) {
    return;
  }
  inputs_ = c.inputs;
  environment_ = c.environment;
  algorithms_ = c.algorithms;
  backend_ = c.backend;
  algorithms_segment_ = c.algorithms.kind == AlgorithmSpec::Kind::all ? "/algorithms=all"
                        : c.algorithms.kind == AlgorithmSpec::Kind::top
                            ? fmt::format("/algorithms=top:{}", c.algorithms.top)
                            : "";
  inputs_segment_ = inputs_segment(c.inputs);
  environment_segment_ = environment_segment(c.environment);
  json_settings_ = settings_text(c);
  known_ = true;
}

void Identifier::identify(Case& c) {
  take_op(c);
  take_settings(c);
  id_.assign(c.op->name);
  id_ += '/';
  add_params(c);
  id_ += '/';
  id_ += c.mode->name;
  id_ += '/';
  id_ += c.backend;
  id_ += algorithms_segment_;
  id_ += inputs_segment_.empty() ? "" : "/";
  id_ += inputs_segment_;
  if (c.seed_in_id) {
    fmt::format_to(std::back_inserter(id_), "/seed={}", c.seed);
  }
  id_ += environment_segment_.empty() ? "" : "/";
  id_ += environment_segment_;
  c.id = id_;
  // case_to_json(c).dump(), but for "seed_in_id", which names the case and does not change its numbers.
  json_.assign(json_settings_);
  fmt::format_to(std::back_inserter(json_), "\"mode\":\"{}\",\"op\":\"{}\",", c.mode->name, c.op->name);
  add_params_as_json(c);
  fmt::format_to(std::back_inserter(json_), ",\"seed\":{}}}", c.seed);
  c.digest = core::digest_of(json_);
}

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
  Identifier().identify(c);
}

}  // namespace numcheck::plan
