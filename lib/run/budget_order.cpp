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

struct Place {
  std::size_t rank = SIZE_MAX;
  double flops = 0;
  std::size_t group = 0;
};

}  // namespace

std::vector<prepare::GroupPlan> cheapest_first(const std::vector<plan::Case>& cases,
                                               std::vector<prepare::GroupPlan> groups) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const plan::Case& first = cases[groups[i].cases.front()];
    places.push_back({SIZE_MAX, first.op->flops(first.params), i});
  }
  std::ranges::stable_sort(places, {}, &Place::flops);
  std::map<std::pair<std::string_view, std::string_view>, std::size_t> served;
  for (Place& place : places) {
    std::set<std::pair<std::string_view, std::string_view>> kinds;
    for (const std::size_t index : groups[place.group].cases) {
      kinds.emplace(cases[index].op->name, cases[index].mode->name);
    }
    for (const auto& kind : kinds) {
      place.rank = std::min(place.rank, served[kind]++);
    }
  }
  std::ranges::stable_sort(places, {}, [](const Place& place) { return std::tuple(place.rank, place.flops); });
  std::vector<prepare::GroupPlan> ordered;
  ordered.reserve(groups.size());
  for (const Place& place : places) {
    ordered.push_back(std::move(groups[place.group]));
  }
  return ordered;
}

}  // namespace numcheck::run
