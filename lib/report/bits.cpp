#include "report/bits.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <queue>
#include <string_view>

#include <nlohmann/json.hpp>

namespace numcheck::report {
namespace {

using nlohmann::json;

/// Digests of all outputs of a run, by port.
std::map<std::string, std::string> digests_of(const json& run) {
  std::map<std::string, std::string> digests;
  for (const auto& [port, output] : run.at("outputs").items()) {
    digests[port] = output.at("xxh128").get<std::string>();
  }
  return digests;
}

/// Ports whose bits differ, or that only one of the runs has.
std::set<std::string> difference(const json& left, const json& right) {
  std::map<std::string, std::string> digests = digests_of(right);
  std::set<std::string> ports;
  for (const auto& [port, digest] : digests_of(left)) {
    const auto other = digests.find(port);
    if (other == digests.end() || other->second != digest) {
      ports.insert(port);
    }
    digests.erase(port);
  }
  for (const auto& [port, digest] : digests) {
    ports.insert(port);
  }
  return ports;
}

}  // namespace

std::vector<const json*> runs_with_outputs(const json& record) {
  std::vector<const json*> runs;
  for (const json& run : record.at("runs")) {
    if (!run.at("outputs").empty()) {
      runs.push_back(&run);
    }
  }
  return runs;
}

std::vector<std::pair<const json*, const json*>> matching_runs(const json& left, const json& right) {
  const auto implementation = [](const json* run) -> std::string_view {
    return run->at("implementation").get_ref<const std::string&>();
  };
  const std::vector<const json*> others = runs_with_outputs(right);
  std::map<std::string_view, std::queue<const json*>> by_implementation;
  for (const json* b : others) {
    by_implementation[implementation(b)].push(b);
  }
  std::vector<std::pair<const json*, const json*>> pairs;
  std::vector<const json*> unmatched, rest;
  std::set<const json*> matched;
  for (const json* a : runs_with_outputs(left)) {
    const auto same = by_implementation.find(implementation(a));
    if (same == by_implementation.end() || same->second.empty()) {
      unmatched.push_back(a);
      continue;
    }
    pairs.emplace_back(a, same->second.front());
    matched.insert(same->second.front());
    same->second.pop();
  }
  std::ranges::copy_if(others, std::back_inserter(rest), [&matched](const json* b) { return !matched.contains(b); });
  for (std::size_t i = 0; i < std::max(unmatched.size(), rest.size()); ++i) {
    pairs.emplace_back(i < unmatched.size() ? unmatched[i] : nullptr, i < rest.size() ? rest[i] : nullptr);
  }
  return pairs;
}

std::set<std::string> changed_outputs(const json& left, const json& right) {
  static const json kLacking = {{"outputs", json::object()}};
  std::set<std::string> changed;
  for (const auto& [a, b] : matching_runs(left, right)) {
    changed.merge(difference(a == nullptr ? kLacking : *a, b == nullptr ? kLacking : *b));
  }
  return changed;
}

}  // namespace numcheck::report
