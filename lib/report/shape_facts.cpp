#include "report/shape_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "report/number.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using Cases = std::span<const json* const>;

constexpr std::array<std::string_view, 3> kExtents = {"m", "n", "k"};

std::int64_t integer_in(const json& params, std::string_view name) {
  const auto found = params.find(name);
  return found == params.end() || !found->is_number_integer() ? 0 : found->get<std::int64_t>();
}

/// The names of parameters that are not the same in all cases. Parameters are compared side by side, because looking up
/// each by its name takes most of the time of a large report.
std::vector<std::string> varying_names(Cases params) {
  const json& first = *params.front();
  std::vector<bool> varies(first.size(), false);
  for (const json* other : params) {
    auto theirs = other->begin();
    std::size_t i = 0;
    for (auto ours = first.begin(); ours != first.end(); ++ours, ++i) {
      const bool same = theirs != other->end() && theirs.key() == ours.key() && *theirs == *ours;
      varies[i] = varies[i] || !same;
      if (theirs != other->end()) {
        ++theirs;
      }
    }
  }
  std::vector<std::string> names;
  std::size_t i = 0;
  for (auto ours = first.begin(); ours != first.end(); ++ours, ++i) {
    if (varies[i]) {
      names.push_back(ours.key());
    }
  }
  return names;
}

template <class Value>
Fact fact_of(Cases params, std::string_view name, Fact::Kind kind, const Value& value) {
  Fact fact{.name = std::string(name), .kind = kind, .values = {}, .labels = {}};
  fact.values.reserve(params.size());
  std::ranges::transform(params, std::back_inserter(fact.values), [&](const json* one) { return value(*one); });
  return fact;
}

Fact choice_of(Cases params, std::string_view name) {
  const auto label_of = [name](const json& one) {
    const auto found = one.find(name);
    return found == one.end() ? "" : found->is_string() ? found->get<std::string>() : found->dump();
  };
  std::map<std::string, std::int64_t> position;
  for (const json* one : params) {
    position.try_emplace(label_of(*one), 0);
  }
  std::vector<std::string> labels;
  for (auto& [label, at] : position) {
    at = static_cast<std::int64_t>(labels.size());
    labels.push_back(label);
  }
  Fact fact = fact_of(params, name, Fact::Kind::choice, [&](const json& one) { return position.at(label_of(one)); });
  fact.labels = std::move(labels);
  return fact;
}

Fact parameter_of(Cases params, std::string_view name) {
  const json& first = params.front()->at(name);
  if (first.is_number_integer()) {
    return fact_of(params, name, Fact::Kind::integer, [name](const json& one) { return integer_in(one, name); });
  }
  if (first.is_number()) {
    return fact_of(params, name, Fact::Kind::real,
                   [name](const json& one) { return std::int64_t{number_value(one.at(name)) != 0}; });
  }
  return choice_of(params, name);
}

/// Where the rows of no case are padded, these are extents that are listed already.
void add_leading_dimensions(std::vector<Fact>& facts, Cases params) {
  struct Operand {
    std::string_view name, pad, transposed, row, row_if_transposed;
  };
  constexpr std::array<Operand, 3> operands = {
      {{"lda", "pad_a", "trans_a", "k", "m"}, {"ldb", "pad_b", "trans_b", "n", "k"}, {"ldd", "pad_d", "", "n", "n"}}};
  for (const Operand& o : operands) {
    if (std::ranges::any_of(params, [&](const json* one) { return integer_in(*one, o.pad) != 0; })) {
      facts.push_back(fact_of(params, o.name, Fact::Kind::extent, [&o](const json& one) {
        const bool transposed = !o.transposed.empty() && one.at(o.transposed).get<bool>();
        return integer_in(one, transposed ? o.row_if_transposed : o.row) + integer_in(one, o.pad);
      }));
    }
  }
}

}  // namespace

std::vector<Fact> shape_facts(std::string_view op, Cases params) {
  if (params.empty()) {
    return {};
  }
  const std::vector<std::string> names = varying_names(params);
  std::vector<Fact> facts;
  for (const std::string_view name : kExtents) {
    if (std::ranges::find(names, name) != names.end()) {
      facts.push_back(
          fact_of(params, name, Fact::Kind::extent, [name](const json& one) { return integer_in(one, name); }));
    }
  }
  if (op == "gemm") {
    add_leading_dimensions(facts, params);
  }
  for (const std::string& name : names) {
    if (std::ranges::find(kExtents, name) == kExtents.end()) {
      facts.push_back(parameter_of(params, name));
    }
  }
  return facts;
}

double product_size(const json& params) {
  double size = 1;
  for (const std::string_view name : kExtents) {
    size *= static_cast<double>(integer_in(params, name));
  }
  return size;
}

}  // namespace numcheck::report
