#include "plan/include.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plan/settings.hpp"

namespace numcheck::plan {
namespace {

constexpr std::array<std::string_view, 2> kInclusionKeys = {"file", "tags"};
constexpr std::array<std::string_view, 6> kPlanKeys = {"version", "name", "description", "seed", "defaults", "cases"};
// The most values that inheriting from "defaults" may write into cases.
constexpr std::size_t kMaxInherited = 2'000'000;

std::optional<Inclusion> decode_inclusion(const Node& node, Reporter& reporter) {
  if (node.is(Node::Kind::text)) {
    return Inclusion{&node, {}, &node};
  }
  const Node* file = node.find("file");
  if (file == nullptr || !file->is(Node::Kind::text)) {
    wrong_kind(node, "an entry of \"include\"", "a file name, or an object with a \"file\"", reporter,
               R"("include": [{"file": "quick.json", "tags": ["tiny"]}])");
    return {};
  }
  check_keys(node, kInclusionKeys, "an entry of \"include\"", reporter);
  Inclusion inclusion{file, {}, &node};
  if (const Node* tags = node.find("tags")) {
    std::optional<std::vector<std::string>> decoded = decode_tags(*tags, reporter);
    if (decoded && decoded->empty()) {
      reporter.error(*tags, "\"tags\" is empty: leave it out to include every case");
      return {};
    }
    if (!decoded) {
      return {};
    }
    inclusion.tags = std::move(*decoded);
  }
  return inclusion;
}

void inherit(Node& item, const Node& defaults) {
  for (const Member& member : defaults.members) {
    if (item.find(member.key) == nullptr) {
      item.members.push_back(member);
    }
  }
}

std::vector<std::string_view> tags_of(const Node& item) {
  std::vector<std::string_view> words;
  const Node* tags = item.find("tags");
  for (std::size_t i = 0; tags != nullptr && i < tags->items.size(); ++i) {
    words.push_back(tags->items[i].text);
  }
  return words;
}

/// What is not a case, or has no list of tags, is chosen: then the mistake is reported where cases are decoded.
bool is_chosen(const Node& item, const std::vector<std::string>& tags) {
  const Node* list = item.find("tags");
  const bool is_mistake = !item.is(Node::Kind::object) || (list != nullptr && !list->is(Node::Kind::array));
  const std::vector<std::string_view> own = tags_of(item);
  return tags.empty() || is_mistake ||
         std::ranges::any_of(tags, [&own](const std::string& tag) { return std::ranges::find(own, tag) != own.end(); });
}

/// Null if the plan has no usable "cases".
Node* cases_of(Node& plan, Reporter& reporter) {
  const auto member = std::ranges::find(plan.members, "cases", &Member::key);
  if (member == plan.members.end()) {
    reporter.error(plan, "an included plan must have \"cases\"");
    return nullptr;
  }
  if (!member->value.is(Node::Kind::array)) {
    wrong_kind(member->value, "\"cases\"", "a list of objects", reporter);
    return nullptr;
  }
  if (member->value.items.empty()) {
    reporter.error(member->value, "\"cases\" is empty: there is nothing to include");
  }
  return &member->value;
}

/// Null if there are none, or none that can be used.
const Node* defaults_of(const Node& plan, std::size_t cases, Reporter& reporter) {
  const Node* defaults = plan.find("defaults");
  if (defaults == nullptr) {
    return nullptr;
  }
  if (!defaults->is(Node::Kind::object)) {
    wrong_kind(*defaults, "\"defaults\"", "an object", reporter);
    return nullptr;
  }
  if (const Node* params = defaults->find("params")) {
    reporter.error(*params, "an included plan cannot have \"params\" in \"defaults\": write them into its cases");
    return nullptr;
  }
  const std::size_t values = count_values(*defaults);
  if (values > kMaxInherited / std::max<std::size_t>(1, cases)) {
    reporter.error(*defaults, fmt::format("\"defaults\" has {} values, too many for this many cases", values));
    return nullptr;
  }
  return defaults;
}

void report_none_chosen(const Node& cases, const Inclusion& inclusion, Reporter& reporter) {
  std::set<std::string_view> known;
  for (const Node& item : cases.items) {
    const std::vector<std::string_view> tags = tags_of(item);
    known.insert(tags.begin(), tags.end());
  }
  const std::vector<std::string_view> words(known.begin(), known.end());
  reporter.error(*inclusion.where, fmt::format("no case of {} has such a tag", quote(inclusion.file->text)),
                 {suggestion(inclusion.tags.front(), words, "its tags are:"), {}});
}

}  // namespace

std::vector<Inclusion> decode_inclusions(const Node& include, Reporter& reporter) {
  std::vector<Inclusion> inclusions;
  const auto add = [&](const Node& node) {
    if (std::optional<Inclusion> inclusion = decode_inclusion(node, reporter)) {
      inclusions.push_back(std::move(*inclusion));
    }
  };
  if (include.is(Node::Kind::array)) {
    std::ranges::for_each(include.items, add);
  } else {
    add(include);
  }
  return inclusions;
}

std::vector<Node> chosen_cases(Node plan, const Inclusion& inclusion, Reporter& reporter) {
  check_keys(plan, kPlanKeys, "a plan", reporter);
  Node* cases = cases_of(plan, reporter);
  if (cases == nullptr) {
    return {};
  }
  const Node* defaults = defaults_of(plan, cases->items.size(), reporter);
  if (defaults != nullptr) {
    for (Node& item : cases->items) {
      if (item.is(Node::Kind::object)) {
        inherit(item, *defaults);
      }
    }
  }
  std::vector<Node> chosen;
  for (Node& item : cases->items) {
    if (is_chosen(item, inclusion.tags)) {
      chosen.push_back(std::move(item));
    }
  }
  if (chosen.empty() && !cases->items.empty()) {
    report_none_chosen(*cases, inclusion, reporter);
  }
  return chosen;
}

}  // namespace numcheck::plan
