#include "model/expected_class.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "model/embedded_files.hpp"

namespace numcheck::model {
namespace {

using op::Compute;

struct ClassName {
  std::string_view name;
  PrecisionClass value;
};
constexpr std::array kClassNames = {
    ClassName{"fp32", PrecisionClass::fp32}, ClassName{"tf32_rne", PrecisionClass::tf32_rne},
    ClassName{"tf32_truncated", PrecisionClass::tf32_truncated}, ClassName{"bf16_inputs", PrecisionClass::bf16_inputs}};

struct ComputeName {
  std::string_view name;
  Compute value;
};
constexpr std::array kComputeNames = {
    ComputeName{"fp32", Compute::fp32},           ComputeName{"fp32_pedantic", Compute::fp32_pedantic},
    ComputeName{"fast_tf32", Compute::fast_tf32}, ComputeName{"fast_16f", Compute::fast_16f},
    ComputeName{"fast_16bf", Compute::fast_16bf}, ComputeName{"emulated_bf16x9", Compute::emulated_bf16x9}};

template <class T>
auto value_named(const T& table, std::string_view name) {
  const auto found = std::ranges::find_if(table, [name](const auto& row) { return row.name == name; });
  if (found == table.end()) {
    throw core::InternalError("configs/tf32_classes.json: unknown word \"" + std::string(name) + "\"");
  }
  return found->value;
}

struct Expectation {
  PrecisionClass unset;
  PrecisionClass forbidden;
  PrecisionClass forced;
};

struct Substitute {
  PrecisionClass expected;
  PrecisionClass observed;
};

struct Permission {
  Compute request;
  PrecisionClass observed;
};

struct Table {
  std::map<Compute, Expectation> requests;
  std::vector<Substitute> acceptable;
  std::vector<Permission> permitted;
};

Table parse_table() {
  const auto root = nlohmann::json::parse(tf32_classes_text());
  Table table;
  for (const auto& [name, row] : root.at("requests").items()) {
    const auto at = [&classes = row](const char* key) {
      return value_named(kClassNames, classes.at(key).get<std::string>());
    };
    table.requests[value_named(kComputeNames, name)] = {at("unset"), at("0"), at("1")};
  }
  for (const auto& row : root.at("acceptable")) {
    table.acceptable.push_back({value_named(kClassNames, row.at("expected").get<std::string>()),
                                value_named(kClassNames, row.at("observed").get<std::string>())});
  }
  for (const auto& row : root.at("permitted")) {
    table.permitted.push_back({value_named(kComputeNames, row.at("request").get<std::string>()),
                               value_named(kClassNames, row.at("observed").get<std::string>())});
  }
  return table;
}

const Table& table() {
  static const Table parsed = parse_table();
  return parsed;
}

}  // namespace

PrecisionClass expected_class(const op::Mode& mode, std::string_view override_value) {
  if (mode.first != core::Dtype::fp32 || mode.second != core::Dtype::fp32) {
    return PrecisionClass::native;
  }
  const auto row = table().requests.find(mode.compute);
  if (row == table().requests.end()) {
    throw core::InternalError("configs/tf32_classes.json has no row for mode " + std::string(mode.name));
  }
  if (override_value == "0") {
    return row->second.forbidden;
  }
  return override_value == "1" ? row->second.forced : row->second.unset;
}

bool acceptable_class(PrecisionClass expected, PrecisionClass observed) {
  return expected == observed || std::ranges::any_of(table().acceptable, [&](const Substitute& s) {
           return s.expected == expected && s.observed == observed;
         });
}

bool permitted_class(const op::Mode& mode, PrecisionClass observed) {
  return std::ranges::any_of(table().permitted,
                             [&](const Permission& p) { return p.request == mode.compute && p.observed == observed; });
}

PrecisionClass judged_class(const op::Mode& mode, PrecisionClass expected, std::optional<PrecisionClass> observed) {
  // BF16 has fewer bits than every other class.
  const PrecisionClass other = observed.value_or(PrecisionClass::bf16_inputs);
  return permitted_class(mode, other) ? other : expected;
}

}  // namespace numcheck::model
