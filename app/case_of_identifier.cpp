#include "case_of_identifier.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "catalog.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "core/strings.hpp"
#include "plan/plan.hpp"
#include "prepare/catalog.hpp"
#include "reproduce.hpp"

namespace numcheck::app {
namespace {

using nlohmann::json;

/// As a plan writes it; what is not a number is left to the plan's decoder, which says so.
json value_of(const op::Field& field, const std::string& text) {
  if (field.kind == op::FieldKind::choice) {
    return text;
  }
  if (field.kind == op::FieldKind::boolean && (text == "0" || text == "1")) {
    return text == "1";
  }
  const json number = json::parse(text, nullptr, false);
  return number.is_primitive() ? number : json(text);
}

json params_of(const op::Op& op, const std::string& segment) {
  json params = json::object();
  if (segment == "default") {
    return params;
  }
  const std::vector<op::Field>& fields = op.fields();
  std::vector<std::string_view> tags;
  std::ranges::transform(fields, std::back_inserter(tags), &op::Field::tag);
  for (const std::string& part : core::split(segment, ',')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string tag = part.substr(0, equals);
    require_known(tag, fmt::format("parameter of {}", op.name), tags);
    const auto field = std::ranges::find(fields, tag, &op::Field::tag);
    params[std::string(field->name)] = value_of(*field, part.substr(std::min(equals + 1, part.size())));
  }
  return params;
}

/// A value for each parameter that has to be given.
json least_params(const op::Op& op) {
  constexpr int kSmall = 16;
  json params = json::object();
  for (const op::Field& field : op.fields()) {
    if (field.required) {
      params[std::string(field.name)] = kSmall;
    }
  }
  return params;
}

/// The case of a plan that has only this one.
plan::Case only_case(json one) {
  const json plan = {{"version", 1}, {"name", "identifier"}, {"cases", json::array({std::move(one)})}};
  const std::string text = plan.dump(-1, ' ', false, json::error_handler_t::replace);
  return plan::parse_plan(text, "identifier", vocabulary(), {}).cases.front();
}

}  // namespace

plan::Case case_of_identifier(const std::string& identifier) {
  const std::vector<std::string> segments = core::split(identifier, '/');
  if (segments.size() > 4) {
    throw core::UsageError(fmt::format(
        "explain: {} says more than op, parameters, mode and backend, so it needs its plan: te-numcheck explain "
        "{} PLAN",
        core::printable(identifier), shell_word(identifier)));
  }
  std::vector<std::string_view> ops;
  for (const prepare::CatalogRow& row : catalog()) {
    ops.push_back(row.op->name);
  }
  require_known(segments[0], "op", ops);
  const op::Op& op = *prepare::find_row(catalog(), segments[0])->op;
  if (segments.size() < 3) {
    const plan::Case example =
        only_case({{"op", op.name}, {"params", least_params(op)}, {"mode", op.modes.front()}, {"backend", "sim"}});
    throw core::UsageError(fmt::format("explain: {} is not a whole identifier: op/parameters/mode/backend, such as {}",
                                       core::printable(identifier), example.id));
  }
  return only_case({{"op", op.name},
                    {"params", params_of(op, segments[1])},
                    {"mode", segments[2]},
                    {"backend", segments.size() == 3 ? "auto" : segments[3]}});
}

}  // namespace numcheck::app
