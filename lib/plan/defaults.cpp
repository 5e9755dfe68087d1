// Mistakes in "defaults" that no case would reveal.
#include <algorithm>

#include <fmt/format.h>

#include "plan/case_spec.hpp"
#include "plan/settings.hpp"

namespace numcheck::plan {
namespace {

void check_params(const Node& params, const Vocabulary& vocabulary, Reporter& reporter) {
  if (!params.is(Node::Kind::object)) {
    wrong_kind(params, "\"params\"", "an object", reporter);
    return;
  }
  std::vector<std::string_view> names;
  for (const op::Op* op : vocabulary.ops) {
    for (const op::Field& field : op->fields()) {
      names.push_back(field.name);
    }
  }
  for (const Member& member : params.members) {
    if (member.key == "$comment") {
      continue;
    }
    if (std::ranges::find(names, member.key) == names.end()) {
      reporter.error(member, fmt::format("no op has a parameter {}", quote(member.key)),
                     {suggestion(member.key, names, "parameters are:"), {}});
    }
    for (const op::Op* op : vocabulary.ops) {
      if (const std::optional<std::size_t> field = op::field_index(*op, member.key)) {
        static_cast<void>(decode_axis(member.value, op->fields()[*field], reporter));
      }
    }
  }
}

}  // namespace

void check_defaults(const Node& defaults, const Vocabulary& vocabulary, Reporter& reporter) {
  check_keys(defaults, case_keys(), "\"defaults\"", reporter);
  const auto each = [&](std::string_view key, auto&& decode) {
    if (const Node* node = defaults.find(key)) {
      for (const Node* element : elements(*node, quote(key), reporter)) {
        static_cast<void>(decode(*element));
      }
    }
  };
  const auto one = [&](std::string_view key, auto&& decode) {
    if (const Node* node = defaults.find(key)) {
      static_cast<void>(decode(*node));
    }
  };
  one("params", [&](const Node& node) {
    check_params(node, vocabulary, reporter);
    return true;
  });
  each("mode", [&](const Node& node) { return decode_mode(node, nullptr, reporter); });
  each("backend", [&](const Node& node) { return decode_backend(node, vocabulary, reporter); });
  each("inputs", [&](const Node& node) { return decode_inputs(node, reporter); });
  each("environment", [&](const Node& node) { return decode_environment(node, reporter); });
  each("seed", [&](const Node& node) { return decode_unsigned(node, "\"seed\"", 0, UINT64_MAX, reporter); });
  one("algorithms", [&](const Node& node) { return decode_algorithms(node, reporter); });
  one("tolerance", [&](const Node& node) { return decode_tolerance(node, reporter); });
  one("tags", [&](const Node& node) { return decode_tags(node, reporter); });
}

}  // namespace numcheck::plan
