#include "plan/case_json.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/strings.hpp"
#include "plan/backend_name.hpp"
#include "plan/case.hpp"
#include "plan/node.hpp"
#include "plan/reporter.hpp"
#include "plan/settings.hpp"
#include "plan/values.hpp"

namespace numcheck::plan {
namespace {

constexpr std::array<std::string_view, 9> kKeys = {"op",   "params",     "mode",        "backend",   "inputs",
                                                   "seed", "seed_in_id", "environment", "algorithms"};

nlohmann::json number_to_json(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(core::shortest(value));
}

nlohmann::json distribution_to_json(const data::Distribution& distribution) {
  nlohmann::json json = {{"distribution", distribution.name}};
  const data::DistributionInfo* info = data::find_distribution(distribution.name);
  for (std::size_t i = 0; info != nullptr && i < distribution.params.size(); ++i) {
    json[std::string(info->fields()[i].name)] = value_to_json(distribution.params[i]);
  }
  return json;
}

nlohmann::json inputs_to_json(const InputSpec& inputs) {
  nlohmann::json json = distribution_to_json(inputs.common);
  for (const auto& [port, distribution] : inputs.ports) {
    json[port] = distribution_to_json(distribution);
  }
  return json;
}

nlohmann::json environment_to_json(const Environment& environment) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : environment) {
    json[name] = value ? nlohmann::json(*value) : nlohmann::json(nullptr);
  }
  return json;
}

nlohmann::json algorithms_to_json(const AlgorithmSpec& algorithms) {
  switch (algorithms.kind) {
    case AlgorithmSpec::Kind::heuristic:
      return "heuristic";
    case AlgorithmSpec::Kind::all:
      return "all";
    case AlgorithmSpec::Kind::top:
      return {{"top", algorithms.top}};
  }
  return "heuristic";
}

/// Decodes the one-line form: like a plan's case, but without axes, defaults and rules.
class CaseReader {
 public:
  CaseReader(const Node& node, OpLookup lookup, Reporter& reporter)
      : node_(node), lookup_(lookup), reporter_(reporter) {}

  Case read() {
    Case c;
    c.inputs.common = data::make_distribution("normal");
    if (!node_.is(Node::Kind::object)) {
      wrong_kind(node_, "a case", "an object", reporter_);
      return c;
    }
    check_keys(node_, kKeys, "a case", reporter_);
    read_op(c);
    if (const Node* mode = require("mode"); mode != nullptr && !mode->is(Node::Kind::text)) {
      wrong_kind(*mode, "\"mode\"", "a string", reporter_);
    } else if (mode != nullptr) {
      c.mode = decode_mode(*mode, c.op, reporter_);
    }
    read_backend(c);
    read_settings(c);
    if (c.op != nullptr) {
      read_params(c);
    }
    if (!reporter_.failed() && c.op != nullptr && c.mode != nullptr) {
      check(c);
    }
    return c;
  }

 private:
  const Node* require(std::string_view key) {
    const Node* value = node_.find(key);
    if (value == nullptr) {
      reporter_.error(node_, fmt::format("this case has no {}", quote(key)));
    }
    return value;
  }

  void read_op(Case& c) {
    const Node* op = require("op");
    if (op == nullptr) {
      return;
    }
    c.op = op->is(Node::Kind::text) ? lookup_(op->text) : nullptr;
    if (c.op == nullptr) {
      reporter_.error(*op, op->is(Node::Kind::text) ? "unknown op " + quote(op->text) : "\"op\" must be a string");
    }
  }

  void read_backend(Case& c) {
    const Node* backend = require("backend");
    if (backend == nullptr) {
      return;
    }
    if (!backend->is(Node::Kind::text) || !is_backend_name(backend->text)) {
      reporter_.error(*backend, "\"backend\" must be the name of a backend");
      return;
    }
    c.backend = backend->text;
  }

  void read_settings(Case& c) {
    if (const Node* inputs = node_.find("inputs")) {
      c.inputs = decode_inputs(*inputs, reporter_).value_or(InputSpec{});
    }
    if (const Node* environment = node_.find("environment")) {
      c.environment = decode_environment(*environment, reporter_).value_or(Environment{});
    }
    if (const Node* algorithms = node_.find("algorithms")) {
      c.algorithms = decode_algorithms(*algorithms, reporter_).value_or(AlgorithmSpec{});
    }
    if (const Node* seed = node_.find("seed")) {
      c.seed = decode_unsigned(*seed, "\"seed\"", 0, std::numeric_limits<std::uint64_t>::max(), reporter_).value_or(0);
    }
    if (const Node* named = node_.find("seed_in_id")) {
      if (!named->is(Node::Kind::boolean)) {
        wrong_kind(*named, "\"seed_in_id\"", "true or false", reporter_);
      }
      c.seed_in_id = named->truth;
    }
  }

  void read_params(Case& c) {
    const Node* params = require("params");
    if (params == nullptr) {
      return;
    }
    if (!params->is(Node::Kind::object)) {
      wrong_kind(*params, "\"params\"", "an object", reporter_);
      return;
    }
    std::vector<std::string_view> names;
    for (const op::Field& field : c.op->fields()) {
      names.push_back(field.name);
      const Node* value = params->find(field.name);
      if (value == nullptr && field.required) {
        reporter_.error(*params, fmt::format("{} needs {}: {}", c.op->name, quote(field.name), field.doc));
      }
      c.params.push_back(value == nullptr ? field.fallback
                                          : decode_scalar(*value, field, reporter_).value_or(field.fallback));
    }
    check_keys(*params, names, c.op->name, reporter_);
  }

  void check(const Case& c) {
    const std::vector<std::string> mistakes = c.op->check(c.params, *c.mode);
    for (const std::string& mistake : mistakes) {
      reporter_.error(*node_.find("params"), mistake);
    }
    if (!mistakes.empty()) {
      return;
    }
    const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
    for (const auto& [name, distribution] : c.inputs.ports) {
      const auto port = std::ranges::find(ports, name, &op::Port::name);
      if (port == ports.end() || port->role != op::Role::input) {
        reporter_.error(*node_.find("inputs"),
                        fmt::format("{} has no input {} with these parameters", c.op->name, quote(name)));
      } else if (!port->has_distribution()) {
        reporter_.error(*node_.find("inputs"), computed_input_text(*c.op, name));
      }
    }
  }

  const Node& node_;
  OpLookup lookup_;
  Reporter& reporter_;
};

}  // namespace

nlohmann::json value_to_json(const op::Value& value) {
  if (const auto* number = std::get_if<double>(&value)) {
    return number_to_json(*number);
  }
  if (const auto* truth = std::get_if<bool>(&value)) {
    return *truth;
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    return *integer;
  }
  return std::get<core::InternedString>(value).str();
}

void append_json(const op::Value& value, std::string& text) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    fmt::format_to(std::back_inserter(text), "{}", *integer);
  } else if (const auto* truth = std::get_if<bool>(&value)) {
    text += *truth ? "true" : "false";
  } else {
    text += value_to_json(value).dump();
  }
}

std::string settings_text(const Case& c) {
  const nlohmann::json settings = {{"algorithms", algorithms_to_json(c.algorithms)},
                                   {"backend", c.backend},
                                   {"environment", environment_to_json(c.environment)},
                                   {"inputs", inputs_to_json(c.inputs)}};
  std::string text = settings.dump();
  text.back() = ',';
  return text;
}

nlohmann::json case_to_json(const Case& c) {
  nlohmann::json params = nlohmann::json::object();
  const std::vector<op::Field>& fields = c.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    params[std::string(fields[i].name)] = value_to_json(c.params[i]);
  }
  nlohmann::json json = {{"op", std::string(c.op->name)},
                         {"params", std::move(params)},
                         {"mode", std::string(c.mode->name)},
                         {"backend", c.backend},
                         {"inputs", inputs_to_json(c.inputs)},
                         {"seed", c.seed},
                         {"environment", environment_to_json(c.environment)},
                         {"algorithms", algorithms_to_json(c.algorithms)}};
  if (c.seed_in_id) {
    json["seed_in_id"] = true;
  }
  return json;
}

Case case_from_json(const nlohmann::json& json, OpLookup lookup) {
  const Node node = node_from_json(json);
  const Sources sources;
  Reporter reporter(sources);
  reporter.set_root(node);
  Case c = CaseReader(node, lookup, reporter).read();
  reporter.throw_if_failed();
  identify(c);
  return c;
}

}  // namespace numcheck::plan
