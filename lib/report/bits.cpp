#include "report/bits.hpp"

#include <algorithm>
#include <map>

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
  std::vector<const json*> rest = runs_with_outputs(right), unmatched;
  std::vector<std::pair<const json*, const json*>> pairs;
  for (const json* a : runs_with_outputs(left)) {
    const auto b = std::ranges::find_if(
        rest, [a](const json* run) { return run->at("implementation") == a->at("implementation"); });
    if (b == rest.end()) {
      unmatched.push_back(a);
      continue;
    }
    pairs.emplace_back(a, *b);
    rest.erase(b);
  }
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
