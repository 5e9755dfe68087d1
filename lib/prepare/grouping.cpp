#include "prepare/grouping.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "core/parallel.hpp"
#include "core/strings.hpp"
#include "model/expected_class.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::prepare {
namespace {

std::string text_of(const data::Distribution& distribution) {
  std::string text = distribution.name;
  for (const op::Value& value : distribution.params) {
    text += "," + op::value_text(value);
  }
  return text;
}

core::Digest group_key(const plan::Case& c) {
  std::string key = std::string(c.op->name) + "|" + std::to_string(c.seed) + "|" + text_of(c.inputs.common);
  for (const auto& [port, distribution] : c.inputs.ports) {
    key += "|" + port + "=" + text_of(distribution);
  }
  const std::vector<op::Field>& fields = c.op->fields();
  const bool all = !shares_storage(c);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (all || !fields[i].storage_only) {
      key += '|';
      op::append_text(c.params[i], key);
    }
  }
  if (c.inputs.exact_leg()) {
    const op::ExactPlan plan = c.op->exact_plan(c.params, *c.mode);
    key += "|" + std::to_string(plan.max_first) + "," + std::to_string(plan.max_second) + "," +
           std::to_string(plan.stride) + "," + std::to_string(plan.max_addend) + "," + (plan.positive ? "p" : "s");
  }
  return core::digest_of(key);
}

struct LowBits {
  std::size_t operator()(const core::Digest& digest) const noexcept { return digest.low; }
};

std::uint64_t elements_of(const std::vector<op::Port>& ports, op::Role role) {
  std::uint64_t sum = 0;
  for (const op::Port& port : ports) {
    sum += port.role == role ? static_cast<std::uint64_t>(port.elements()) : 0;
  }
  return sum;
}

std::uint64_t extent_of(const std::vector<op::Port>& ports) {
  std::uint64_t sum = 0;
  for (const op::Port& port : ports) {
    sum += port.extent_bytes();
  }
  return sum;
}

/// Elements of the outputs that are not integers.
std::uint64_t numbers_in_outputs(const std::vector<op::Port>& ports) {
  std::uint64_t count = 0;
  for (const op::Port& port : ports) {
    count += port.role == op::Role::output && !core::is_integer(port.dtype)
                 ? static_cast<std::uint64_t>(port.elements())
                 : 0;
  }
  return count;
}

std::string rounding_text(const std::vector<op::Port>& ports) {
  std::string text;
  for (const op::Port& port : ports) {
    if (port.role == op::Role::input) {
      text += std::string(core::dtype_info(port.dtype).name) + ";";
    }
  }
  return text;
}

/// Elements of outputs that depend on what a device passes on, so that each rounding has two references of them.
std::uint64_t judged_twice(const std::vector<op::Port>& ports) {
  return std::ranges::any_of(ports, &op::Port::passed_on) ? elements_of(ports, op::Role::output) : 0;
}

/// True if the case asks for FP32 operands to be rounded before they are multiplied: a second reference, of the operands so
/// rounded, then judges it.
bool may_convert(const plan::Case& c) {
  const auto setting = c.environment.find("NVIDIA_TF32_OVERRIDE");
  const std::string value = setting == c.environment.end() ? "" : setting->second.value_or("");
  const model::PrecisionClass expected =
      c.op->multiplies_matrices ? model::expected_class(*c.mode, value) : model::PrecisionClass::native;
  return expected != model::PrecisionClass::native && expected != model::PrecisionClass::fp32;
}

// Bytes per element: a number of any kind as a double; the two FP32 yardsticks of an output.
constexpr std::uint64_t kDouble = sizeof(double);
constexpr std::uint64_t kYardsticks = 2 * sizeof(float);

/// Whether inputs are stored as other numbers than were drawn, so that both are kept, and values for both.
bool rounds(const std::vector<op::Port>& ports) {
  return std::ranges::any_of(ports, [](const op::Port& port) {
    return port.role == op::Role::input &&
           core::dtype_info(port.dtype).storage_bytes < core::dtype_info(core::Dtype::fp32).storage_bytes;
  });
}

/// Of all outputs, for all roundings together: yardsticks of products, of which a sample is enough for the total error; otherwise what
/// was decoded for the op's own gates, and values for unrounded inputs or of a mistake, one at a time. Of integers little is asked.
std::uint64_t shared_output_bytes(const plan::Case& c, const std::vector<op::Port>& ports) {
  if (op::is_product(*c.op) && compares_bits(c)) {  // a product in FP32
    return (elements_of(ports, op::Role::input) + numbers_in_outputs(ports)) * sizeof(float);
  }
  return numbers_in_outputs(ports) * (op::is_product(*c.op) ? kYardsticks : 2 * kDouble);
}

/// Of each rounding: the values, and yardsticks unless they are shared; where gelu is applied to sums, these and the yardsticks for
/// each of them.
std::uint64_t own_output_bytes(const plan::Case& c, const std::vector<op::Port>& ports) {
  const std::uint64_t doubles = elements_of(ports, op::Role::output) * kDouble;
  if (!op::is_product(*c.op)) {
    return doubles + numbers_in_outputs(ports) * kYardsticks;
  }
  const bool gelu = std::get<core::InternedString>(c.params[*op::field_index(*c.op, "epilogue")]) == "gelu";
  return doubles + (gelu ? numbers_in_outputs(ports) * (sizeof(float) + kYardsticks) : 0);
}

/// Of the converted operands and what they yield.
std::uint64_t converted_bytes(const plan::Case& c, const std::vector<op::Port>& ports) {
  return may_convert(c) ? (elements_of(ports, op::Role::input) + elements_of(ports, op::Role::output)) * kDouble : 0;
}

/// Whether one of the cases stores that input in FP32.
bool is_stored_in_fp32(const std::vector<plan::Case>& cases, const std::vector<std::size_t>& of,
                       const op::Port& input) {
  return std::ranges::any_of(of, [&](std::size_t index) {
    const std::vector<op::Port> ports = cases[index].op->ports(cases[index].params, *cases[index].mode);
    const op::Port* found = op::find_port(ports, input.name);
    return found != nullptr && found->dtype == core::Dtype::fp32;
  });
}

/// Of a group that streams, besides what devices read and write: unrounded inputs in FP32, unless a case stores them so. Where an
/// input follows from others or is scaled, all are doubles while they are stored: drawn, derived, and as they were stored.
template <class InFp32>
std::uint64_t drawn_bytes(const std::vector<op::Port>& ports, const InFp32& in_fp32) {
  const bool in_doubles = std::ranges::any_of(ports, [&](const op::Port& port) {
    const bool follows = !port.is_generated() && port.elements() > 1;  // a number follows from amaxes
    return port.role == op::Role::input && (follows || is_scaled(ports, port.name));
  });
  std::uint64_t bytes = 0;
  for (const op::Port& port : ports) {
    if (port.role != op::Role::input) {
      continue;
    }
    const bool derived = !port.is_generated(), rounded = derived || port.dtype != core::Dtype::fp32;
    const std::uint64_t doubles = in_doubles ? 1 + (derived ? 1 : 0) + (rounded ? 1 : 0) : 0;
    bytes += static_cast<std::uint64_t>(port.elements()) * (doubles * kDouble + (in_fp32(port) ? 0 : sizeof(float)));
  }
  return bytes;
}

}  // namespace

bool is_scaled(const std::vector<op::Port>& ports, std::string_view input) {
  return std::ranges::any_of(
      ports, [input](const op::Port& port) { return port.role == op::Role::scale && port.of == input; });
}

bool compares_bits(const plan::Case& c) {
  return c.inputs.exact_leg() && c.op->exact_plan(c.params, *c.mode).reason.empty();
}

bool shares_storage(const plan::Case& c) {
  return std::ranges::all_of(c.op->ports(c.params, *c.mode), [](const op::Port& port) {
    const bool is_copy = port.role == op::Role::output && !port.of.empty();
    return port.role == op::Role::input || (port.scaled_by.empty() && !is_copy);
  });
}

std::vector<GroupPlan> group_cases(const std::vector<plan::Case>& cases, const std::vector<std::size_t>& selected) {
  std::vector<GroupPlan> groups;
  std::unordered_map<core::Digest, std::size_t, LowBits> known;
  for (const std::size_t index : selected) {
    const core::Digest key = group_key(cases[index]);
    const auto [found, is_new] = known.try_emplace(key, groups.size());
    if (is_new) {
      groups.push_back({.key = key, .cases = {}});
    }
    groups[found->second].cases.push_back(index);
  }
  return groups;
}

std::size_t count_groups(const std::vector<plan::Case>& cases) {
  std::vector<core::Digest> keys(cases.size());
  core::parallel_for(cases.size(), [&](std::size_t i) { keys[i] = group_key(cases[i]); });
  std::ranges::sort(keys);
  return cases.size() - std::ranges::unique(keys).size();
}

std::uint64_t estimate_case_bytes(const plan::Case& c, bool streams) {
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  if (streams) {
    return drawn_bytes(ports, [](const op::Port& port) { return port.dtype == core::Dtype::fp32; }) + extent_of(ports);
  }
  return elements_of(ports, op::Role::input) * (rounds(ports) ? 2 : 1) * kDouble + shared_output_bytes(c, ports) +
         own_output_bytes(c, ports) + judged_twice(ports) * (kDouble + kYardsticks) + extent_of(ports) +
         converted_bytes(c, ports);
}

std::uint64_t estimate_bytes(const std::vector<plan::Case>& cases, const GroupPlan& group, bool streams) {
  const auto in_fp32 = [&](const op::Port& port) { return is_stored_in_fp32(cases, group.cases, port); };
  std::set<std::string> roundings;
  std::uint64_t bytes = 0, converted = 0, shared = 0;
  for (const std::size_t index : group.cases) {
    const plan::Case& c = cases[index];
    const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
    bytes += extent_of(ports);
    if (streams) {
      bytes += index == group.cases.front() ? drawn_bytes(ports, in_fp32) : 0;
      continue;
    }
    converted = std::max(converted, converted_bytes(c, ports));
    if (roundings.empty()) {
      bytes += elements_of(ports, op::Role::input) * kDouble;
    }
    shared = std::max(shared, shared_output_bytes(c, ports));
    if (roundings.insert(rounding_text(ports)).second) {
      bytes += elements_of(ports, op::Role::input) * (rounds(ports) ? kDouble : 0) + own_output_bytes(c, ports) +
               judged_twice(ports) * (kDouble + kYardsticks);
    }
  }
  return bytes + converted + shared;
}

std::vector<GroupPlan> split_to_fit(const std::vector<plan::Case>& cases, const GroupPlan& group,
                                    std::uint64_t budget_bytes, bool streams) {
  if (group.cases.empty()) {
    return {};
  }
  if (group.cases.size() == 1 || estimate_bytes(cases, group, streams) <= budget_bytes) {
    return {group};
  }
  const auto middle = group.cases.begin() + static_cast<std::ptrdiff_t>(group.cases.size() / 2);
  std::vector<GroupPlan> parts = split_to_fit(cases, {group.key, {group.cases.begin(), middle}}, budget_bytes, streams);
  for (GroupPlan& part : split_to_fit(cases, {group.key, {middle, group.cases.end()}}, budget_bytes, streams)) {
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace numcheck::prepare
