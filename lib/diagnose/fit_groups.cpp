#include "diagnose/fit_groups.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::diagnose {
namespace {

/// A list of grouped_gemm, and the size of gemm that its entries are.
struct SizeList {
  const char* name;
  const char* of_product;
};
constexpr std::array kLists = {SizeList{"group_m", "m"}, SizeList{"group_n", "n"}, SizeList{"group_k", "k"}};
constexpr std::array kTurns = {"trans_a", "trans_b"};

/// The shapes of each group's tensors, under their names in gemm.
std::vector<std::vector<TensorShape>> shapes_of_groups(std::span<const TensorShape> shapes) {
  std::vector<std::vector<TensorShape>> groups;
  for (const TensorShape& shape : shapes) {
    if (const std::optional<op::GroupPort> port = op::find_group_port(shape.port)) {
      groups.resize(std::max(groups.size(), port->group + 1));
      groups[port->group].push_back({std::string(port->port), shape.dims});
    }
  }
  return groups;
}

/// What is chosen for all groups, as parameters of gemm.
ChosenParams chosen_of_product(const ChosenParams& chosen) {
  ChosenParams own;
  for (const auto& [name, value] : chosen) {
    if (op::field_index(op::gemm(), name).has_value()) {
      own.emplace(name, value);
    }
  }
  own.insert_or_assign("batch", op::Value(std::int64_t{1}));
  return own;
}

/// Those switches in all ways, but for what is chosen; the least turned first.
std::vector<ChosenParams> turned(const ChosenParams& chosen) {
  std::vector<ChosenParams> ways = {chosen};
  for (const char* name : kTurns) {
    if (chosen.contains(name)) {
      continue;
    }
    const std::vector<ChosenParams> before = std::exchange(ways, {});
    for (const bool turn : {false, true}) {
      for (ChosenParams way : before) {
        way.emplace(name, turn);
        ways.push_back(std::move(way));
      }
    }
  }
  return ways;
}

/// The products of all groups with the same switches, or why a group does not fit.
struct Products {
  std::vector<op::GemmParams> products;
  std::vector<std::string> mistakes;
};

Products fit_products(const op::Mode& mode, const ChosenParams& way,
                      const std::vector<std::vector<TensorShape>>& groups) {
  Products all;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const Fit fit = fit_params(op::gemm(), mode, way, groups[group]);
    if (!fit.mistakes.empty()) {
      all.mistakes = {fmt::format("group {}: {}", group, fmt::join(fit.mistakes, "; "))};
      return all;
    }
    all.products.push_back(op::from_params<op::GemmParams>(fit.params));
  }
  return all;
}

/// Whether a list of several sizes is chosen.
bool counts_groups(const ChosenParams& chosen, const SizeList& list) {
  const auto found = chosen.find(list.name);
  return found != chosen.end() && op::value_text(found->second).find('+') != std::string::npos;
}

/// Sizes are read from A and B, which nothing can be computed without.
std::string missing_operand(const std::vector<std::vector<TensorShape>>& groups) {
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const char* port : {"a", "b"}) {
      if (std::ranges::find(groups[group], port, &TensorShape::port) == groups[group].end()) {
        return fmt::format("{} is not there, and {} groups are: an empty group has tensors of 0 rows or columns",
                           op::name_in_group(port, group), groups.size());
      }
    }
  }
  return {};
}

std::string list_of(const std::vector<op::GemmParams>& products, std::string_view size) {
  std::vector<std::int64_t> sizes;
  for (const op::GemmParams& p : products) {
    sizes.push_back(size == "m" ? p.m : size == "n" ? p.n : p.k);
  }
  return fmt::format("{}", fmt::join(sizes, "+"));
}

}  // namespace

std::optional<ChosenParams> chosen_with_group(const ChosenParams& chosen, std::string_view port) {
  const std::optional<op::GroupPort> known = op::find_group_port(port);
  if (!known.has_value()) {
    return {};
  }
  ChosenParams with = chosen;
  if (std::ranges::none_of(kLists, [&chosen](const SizeList& list) { return counts_groups(chosen, list); })) {
    with.emplace("groups", static_cast<std::int64_t>(known->group + 1));
  }
  return with;
}

GroupSizes fit_group_sizes(const op::Mode& mode, const ChosenParams& chosen, std::span<const TensorShape> shapes) {
  GroupSizes found{.chosen = chosen, .notes = {}, .mistakes = {}};
  const std::vector<std::vector<TensorShape>> groups = shapes_of_groups(shapes);
  const bool are_chosen =
      std::ranges::all_of(kLists, [&chosen](const SizeList& list) { return chosen.contains(list.name); });
  if (groups.empty() || are_chosen) {
    return found;
  }
  if (std::string missing = missing_operand(groups); !missing.empty()) {
    found.mistakes = {std::move(missing)};
    return found;
  }
  std::size_t most = 0;  // groups that fit before one does not
  for (const ChosenParams& way : turned(chosen_of_product(chosen))) {
    const Products all = fit_products(mode, way, groups);
    if (!all.mistakes.empty()) {
      if (found.mistakes.empty() || all.products.size() > most) {
        most = all.products.size();
        found.mistakes = all.mistakes;
      }
      continue;
    }
    for (const SizeList& list : kLists) {
      const std::string sizes = list_of(all.products, list.of_product);
      if (found.chosen.emplace(list.name, op::Value(sizes)).second) {
        found.notes.push_back(fmt::format("{} = {}", list.name, sizes));
      }
    }
    for (const char* name : kTurns) {
      const op::Value& turn = way.at(name);
      if (!chosen.contains(name) && std::get<bool>(turn)) {
        found.notes.push_back(fmt::format("{} = true", name));
      }
      found.chosen.insert_or_assign(name, turn);
    }
    found.mistakes.clear();
    return found;
  }
  return found;
}

}  // namespace numcheck::diagnose
