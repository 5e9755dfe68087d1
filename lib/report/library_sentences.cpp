#include "report/library_sentences.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

std::size_t sum(const std::vector<const json*>& rows, const char* member) {
  std::size_t total = 0;
  for (const json* row : rows) {
    total += row->at(member).get<std::size_t>();
  }
  return total;
}

std::string case_count(std::size_t cases) {
  return fmt::format("{} case{}", cases, cases == 1 ? "" : "s");
}

std::string smallest(const std::vector<const json*>& rows) {
  std::vector<const json*> changes;
  for (const json* row : rows) {
    if (!row->at("changes").empty()) {
      changes.push_back(&row->at("changes").front());
    }
  }
  const json& change =
      **std::ranges::min_element(changes, {}, [](const json* one) { return one->at("elements").get<std::uint64_t>(); });
  const json& ratio = change.at("error_over_limit");
  return fmt::format("{} ({}; error/limit {} -> {})", change.at("id").get<std::string>(),
                     fmt::join(change.at("outputs").get<std::vector<std::string>>(), ", "),
                     ratio_text(ratio.at("base")), ratio_text(ratio.at("other")));
}

std::string not_comparable(const std::vector<const json*>& rows) {
  const json* first = nullptr;
  std::set<std::string> reasons;
  for (const json* row : rows) {
    for (const json& reason : row->at("reasons")) {
      reasons.insert(reason.at("text").get<std::string>());
      if (first == nullptr || reason.at("cases").get<std::size_t>() > first->at("cases").get<std::size_t>()) {
        first = &reason;
      }
    }
  }
  if (first == nullptr) {
    return fmt::format("{} not comparable", sum(rows, "not_comparable"));
  }
  std::string text = first->at("text").get<std::string>();
  if (reasons.size() > 1) {
    text += fmt::format("; and {} other reason{}", reasons.size() - 1, reasons.size() == 2 ? "" : "s");
  }
  return fmt::format("{} not comparable ({})", sum(rows, "not_comparable"), text);
}

std::string sentence(const std::string& subject, const std::vector<const json*>& rows) {
  const std::size_t identical = sum(rows, "identical"), changed = sum(rows, "changed");
  std::vector<std::string> clauses;
  if (changed > 0) {
    clauses.push_back(
        fmt::format("changed in {} of {}, smallest: {}", changed, case_count(identical + changed), smallest(rows)));
  } else if (identical > 0) {
    clauses.push_back(fmt::format("bit-identical in {} of {}", identical, case_count(identical)));
  }
  if (sum(rows, "not_comparable") > 0) {
    clauses.push_back(not_comparable(rows));
  }
  if (const std::size_t neither = sum(rows, "neither"); neither > 0) {
    clauses.push_back(fmt::format("{} with neither version", neither));
  }
  return fmt::format("{}: {}", subject, fmt::join(clauses, "; "));
}

}  // namespace

nlohmann::json library_sentences(const nlohmann::json& rows) {
  const auto pair_of = [](const json& row) {
    return fmt::format("{} {} -> {}", row.at("backend").get<std::string>(), row.at("base").get<std::string>(),
                       row.at("other").get<std::string>());
  };
  std::set<std::string> pairs;
  for (const json& row : rows) {
    pairs.insert(pair_of(row));
  }
  std::vector<std::pair<std::string, std::vector<const json*>>> groups;
  for (const json& row : rows) {
    const std::string subject =
        row.at("op").get<std::string>() + (pairs.size() > 1 ? fmt::format(" ({})", pair_of(row)) : "");
    auto at = std::ranges::find(groups, subject, &decltype(groups)::value_type::first);
    if (at == groups.end()) {
      groups.push_back({subject, {}});
      at = std::prev(groups.end());
    }
    at->second.push_back(&row);
  }
  json sentences = json::array();
  for (const auto& [subject, members] : groups) {
    sentences.push_back(sentence(subject, members));
  }
  return sentences;
}

}  // namespace numcheck::report
