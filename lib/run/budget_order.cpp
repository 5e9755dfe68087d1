#include "run/budget_order.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

namespace numcheck::run {
namespace {

struct Entry {
  std::size_t rank = SIZE_MAX;
  double flops = 0;
  std::size_t group = 0;
};

}  // namespace

std::vector<prepare::GroupPlan> cheapest_first(const std::vector<plan::Case>& cases,
                                               std::vector<prepare::GroupPlan> groups) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const plan::Case& first = cases[groups[i].cases.front()];
    entries.push_back({SIZE_MAX, first.op->flops(first.params), i});
  }
  std::ranges::stable_sort(entries, {}, &Entry::flops);
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> next_rank;
  for (Entry& entry : entries) {
    std::set<std::pair<std::string_view, std::string_view>> kinds;
    for (const std::size_t index : groups[entry.group].cases) {
      kinds.emplace(cases[index].op->name, cases[index].mode->name);
    }
    for (const auto& kind : kinds) {
      entry.rank = std::min(entry.rank, next_rank[kind]++);
    }
  }
  std::ranges::stable_sort(entries, {}, [](const Entry& entry) { return std::tuple(entry.rank, entry.flops); });
  std::vector<prepare::GroupPlan> ordered;
  ordered.reserve(groups.size());
  for (const Entry& entry : entries) {
    ordered.push_back(std::move(groups[entry.group]));
  }
  return ordered;
}

}  // namespace numcheck::run
