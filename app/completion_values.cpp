#include "completion_values.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "catalog.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "list_topics.hpp"
#include "machine/device.hpp"
#include "op/mode.hpp"
#include "plans.hpp"
#include "report/report.hpp"
#include "shipped_files.hpp"

namespace numcheck::app {
namespace {

std::vector<std::string> devices() {
  std::vector<std::string> names = {"auto", "cuda:0"};
  for (const int sm : machine::simulated_architectures()) {
    names.push_back(fmt::format("sim:sm_{}", sm));
  }
  return names;
}

template <class Range, class Name>
std::vector<std::string> names_of(const Range& range, const Name& name) {
  std::vector<std::string> names;
  for (const auto& item : range) {
    names.emplace_back(name(item));
  }
  return names;
}

std::vector<plan::Case> cases_of(const std::vector<std::string>& words) {
  std::vector<plan::Case> cases;
  for (const std::string& word : words) {
    if (!names_plan(word)) {
      continue;
    }
    try {
      plan::Plan plan = plan::load_plan(found_plan(word).string(), vocabulary(), {});
      std::ranges::move(plan.cases, std::back_inserter(cases));
    } catch (const core::Error&) {  // the value of another option, or a plan that is being written
    }
  }
  return cases;
}

std::vector<std::string> ops() {
  return names_of(catalog(), [](const auto& row) { return row.op->name; });
}

/// Whether a line begins so that ops come next, not plans: `list faults`.
bool asks_for_op(const std::vector<std::string>& words) {
  return words.size() > 1 && words[0] == "list" && lists_by_op(words[1]);
}

}  // namespace

OfferedValues offered_values(std::string_view option) {
  if (option == "--op") {
    return {.fixed = ops(), .is_list = true};
  }
  if (option == "--mode") {
    return {.fixed = names_of(op::all_modes(), [](const auto& mode) { return mode.name; }), .is_list = true};
  }
  if (option == "--backend") {
    return {.fixed = names_of(backends(), [](const auto& backend) { return backend.name; }), .is_list = true};
  }
  if (option == "--inject") {
    return {.fixed = names_of(faults(), [](const auto& fault) { return fault.name; })};
  }
  if (option == "--device") {
    return {.fixed = devices()};
  }
  if (option == "--tag") {
    return {.asked = kTagValues, .is_list = true};
  }
  if (option == "--case" || option == "--inject-case") {
    return {.asked = kCaseValues};
  }
  return {};
}

std::vector<std::string> asked_values(std::string_view kind, const std::vector<std::string>& words) {
  std::set<std::string> values;
  if (kind == kPlanValues && asks_for_op(words)) {
    const std::vector<std::string> names = ops();
    values.insert(names.begin(), names.end());
  } else if (kind == kPlanValues) {
    for (const auto& [name, file] : shipped_plans()) {
      values.insert(name);
    }
  } else if (kind == kTagValues) {
    for (const plan::Case& c : cases_of(words)) {
      values.insert(c.tags.begin(), c.tags.end());
    }
  } else if (kind == kCaseValues) {
    const std::vector<std::string> digests = names_of(cases_of(words), [](const auto& c) { return c.digest.hex(); });
    for (const std::string& digest : report::short_digests(digests)) {
      values.insert(digest);
    }
  }
  // A value with a line break, or one that would disturb a terminal, cannot be completed.
  std::erase_if(values, [](const std::string& value) { return !core::is_printable(value); });
  return {values.begin(), values.end()};
}

}  // namespace numcheck::app
