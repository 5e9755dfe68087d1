#include "plan/node.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "plan/diagnostic.hpp"

namespace numcheck::plan {
namespace {

std::string escape_pointer(std::string_view key) {
  std::string escaped;
  for (const char c : key) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// Prepends the pointer's parts to `path` on the way back from the target.
bool find_path(const Node& node, const Node& target, std::string& path) {
  if (&node == &target) {
    return true;
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    if (find_path(node.items[i], target, path)) {
      path.insert(0, '/' + std::to_string(i));
      return true;
    }
  }
  for (const Member& member : node.members) {
    if (find_path(member.value, target, path)) {
      path.insert(0, '/' + escape_pointer(member.key));
      return true;
    }
  }
  return false;
}

void append_string(std::string& out, std::string_view text) {
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_canonical(std::string& out, const Node& node);

void append_object(std::string& out, const Node& node) {
  std::vector<const Member*> sorted;
  for (const Member& member : node.members) {
    if (member.key != "$comment") {
      sorted.push_back(&member);
    }
  }
  std::ranges::sort(sorted, {}, [](const Member* m) -> const std::string& { return m->key; });
  out += '{';
  for (const Member* member : sorted) {
    if (member != sorted.front()) {
      out += ',';
    }
    append_string(out, member->key);
    out += ':';
    append_canonical(out, member->value);
  }
  out += '}';
}

void append_canonical(std::string& out, const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      out += "null";
      break;
    case Node::Kind::boolean:
      out += node.truth ? "true" : "false";
      break;
    case Node::Kind::number:
      out += node.text;
      break;
    case Node::Kind::text:
      append_string(out, node.text);
      break;
    case Node::Kind::array:
      out += '[';
      for (const Node& item : node.items) {
        if (&item != node.items.data()) {
          out += ',';
        }
        append_canonical(out, item);
      }
      out += ']';
      break;
    case Node::Kind::object:
      append_object(out, node);
      break;
  }
}

Node convert(const nlohmann::json& json, std::size_t depth) {
  if (depth > kMaxDepth) {
    Diagnostic diagnostic;
    diagnostic.text = "lists and objects are nested more than " + std::to_string(kMaxDepth) + " deep";
    throw PlanError({diagnostic});
  }
  Node node;
  if (json.is_object()) {
    node.kind = Node::Kind::object;
    for (const auto& [key, value] : json.items()) {
      node.members.push_back({key, {}, convert(value, depth + 1)});
    }
  } else if (json.is_array()) {
    node.kind = Node::Kind::array;
    for (const auto& item : json) {
      node.items.push_back(convert(item, depth + 1));
    }
  } else if (json.is_boolean()) {
    node.kind = Node::Kind::boolean;
    node.truth = json.get<bool>();
  } else if (json.is_number()) {
    node.kind = Node::Kind::number;
    node.text = json.dump();
  } else if (json.is_string()) {
    node.kind = Node::Kind::text;
    node.text = json.get<std::string>();
  }
  return node;
}

}  // namespace

const Node* Node::find(std::string_view key) const noexcept {
  const auto found = std::ranges::find(members, key, &Member::key);
  return found == members.end() ? nullptr : &found->value;
}

std::string_view kind_name(Node::Kind kind) noexcept {
  switch (kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::boolean:
      return "a boolean";
    case Node::Kind::number:
      return "a number";
    case Node::Kind::text:
      return "a string";
    case Node::Kind::array:
      return "a list";
    case Node::Kind::object:
      return "an object";
  }
  return "a value";
}

std::string pointer_of(const Node& root, const Node& target) {
  std::string path;
  return find_path(root, target, path) ? path : std::string();
}

std::string canonical_text(const Node& node) {
  std::string out;
  append_canonical(out, node);
  return out;
}

std::size_t count_values(const Node& node) noexcept {
  std::size_t count = 1;
  for (const Node& item : node.items) {
    count += count_values(item);
  }
  for (const Member& member : node.members) {
    count += count_values(member.value);
  }
  return count;
}

Node node_from_json(const nlohmann::json& json) {
  return convert(json, 1);
}

}  // namespace numcheck::plan
