#include "op/grouped_gemm.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"
#include "op/gemm_exact.hpp"
#include "op/gemm_scaling.hpp"
#include "op/product_statistics.hpp"

namespace numcheck::op {
namespace {

constexpr std::array<std::string_view, 8> kModeNames = {"fp32", "fp32_pedantic", "tf32",       "bf16",
                                                        "fp16", "fp8_e4m3",      "fp8_hybrid", "fp4_e2m1"};
constexpr std::array<std::string_view, 11> kPortNames = {
    "a", "b", "c", "bias", "d", "a_scale_inv", "b_scale_inv", "a_global_scale", "b_global_scale", "d_scale", "d_amax"};

/// Nothing if the text is not a list of sizes.
std::optional<std::vector<std::int64_t>> sizes_in(const std::string& text) {
  constexpr std::int64_t kMaxDim = 1 << 30;
  std::vector<std::int64_t> sizes;
  for (const std::string& part : core::split(text, '+')) {
    std::int64_t size = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    const bool is_padded = part.size() > 1 && part.front() == '0';  // another name of the same case
    if (is_padded || error != std::errc() || end != part.data() + part.size() || size < 0 || size > kMaxDim) {
      return {};
    }
    sizes.push_back(size);
  }
  return sizes;
}

/// The lists of sizes, and how many groups they make; mistakes, if they make none.
struct Sizes {
  std::vector<std::int64_t> m, n, k;
  std::size_t groups = 0;
  std::vector<std::string> mistakes;

  explicit Sizes(const GroupedGemmParams& p) {
    read("group_m", p.m, m);
    read("group_n", p.n, n);
    read("group_k", p.k, k);
    if (!mistakes.empty()) {
      return;
    }
    const std::size_t longest = std::max({m.size(), n.size(), k.size()});
    groups = p.groups == 0 ? longest : static_cast<std::size_t>(p.groups);
    if (longest > kMostGroups) {
      mistakes.push_back(fmt::format("grouped_gemm: {} groups; there may be up to {}", longest, kMostGroups));
      return;
    }
    fit("group_m", m);
    fit("group_n", n);
    fit("group_k", k);
  }

 private:
  void read(std::string_view name, const std::string& text, std::vector<std::int64_t>& sizes) {
    if (std::optional<std::vector<std::int64_t>> read = sizes_in(text)) {
      sizes = *std::move(read);
    } else {
      mistakes.push_back(
          fmt::format("grouped_gemm: {} is \"{}\"; it must be whole numbers from 0 to 2^30 joined by +, "
                      "one for each group or one for all: \"1024+512+0\"",
                      name, text));
    }
  }

  void fit(std::string_view name, std::vector<std::int64_t>& sizes) {
    if (sizes.size() == 1) {
      sizes.resize(groups, sizes.front());
    } else if (sizes.size() != groups) {
      mistakes.push_back(
          fmt::format("grouped_gemm: {} has {} sizes for {} groups; give one for each group, or one for all", name,
                      sizes.size(), groups));
    }
  }
};

/// All names that ports of groups can have.
class Names {
 public:
  Names() {
    for (const std::string_view port : kPortNames) {
      const std::size_t letters = std::min(port.find('_'), port.size());
      for (std::size_t group = 0; group < kMostGroups; ++group) {
        const std::string& name =
            texts_.emplace_back(fmt::format("{}{}{}", port.substr(0, letters), group, port.substr(letters)));
        names_[{port, group}] = name;
        ports_[name] = {port, group};
      }
    }
  }

  std::map<std::pair<std::string_view, std::size_t>, std::string_view> names_;
  std::map<std::string_view, GroupPort, std::less<>> ports_;

 private:
  std::deque<std::string> texts_;
};

const Names& all_names() {
  static const Names names;
  return names;
}

bool is_output(const Port& port) {
  return port.role == Role::output || port.role == Role::amax;
}

std::vector<Port> grouped_ports(const Params& values, const Mode& mode) {
  const std::vector<GemmParams> products = products_of(from_params<GroupedGemmParams>(values));
  std::vector<Port> ports;
  std::vector<Port> outputs;
  for (std::size_t group = 0; group < products.size(); ++group) {
    for (Port port : gemm().ports(to_params(products[group]), mode)) {
      port.name = name_in_group(port.name, group);
      port.of = name_in_group(port.of.empty() ? "d" : port.of, group);
      if (port.role == Role::output) {
        port.of = {};
      }
      if (!port.scaled_by.empty()) {
        port.scaled_by = name_in_group(port.scaled_by, group);
      }
      (is_output(port) ? outputs : ports).push_back(port);
    }
  }
  std::ranges::move(outputs, std::back_inserter(ports));
  return ports;
}

std::vector<std::string> grouped_check(const Params& values, const Mode& mode) {
  const auto p = from_params<GroupedGemmParams>(values);
  const Sizes sizes(p);
  if (!sizes.mistakes.empty()) {
    return sizes.mistakes;
  }
  for (const GemmParams& product : products_of(p)) {
    std::vector<std::string> mistakes = gemm().check(to_params(product), mode);
    if (!mistakes.empty()) {
      for (std::string& mistake : mistakes) {
        mistake.insert(0, "grouped_");
      }
      return mistakes;
    }
  }
  return {};
}

/// Integers that suit the sums of all groups: those for the longest one. The second form for promoted FP8 only if all
/// groups have it.
ExactPlan grouped_exact_plan(const Params& values, const Mode& mode) {
  const std::vector<GemmParams> products = products_of(from_params<GroupedGemmParams>(values));
  GemmParams longest = *std::ranges::max_element(products, {}, &GemmParams::k);
  ExactPlan plan = gemm_exact_plan(to_params(longest), mode);
  const bool all_alike = std::ranges::all_of(products, [&](const GemmParams& product) {
    return gemm_exact_plan(to_params(product), mode).positive == plan.positive;
  });
  if (all_alike) {
    return plan;
  }
  longest.k |= 1;  // the second form needs whole chunks
  return gemm_exact_plan(to_params(longest), mode);
}

void grouped_exact_inputs(const Params& values, const Port& port, std::span<double> drawn) {
  const GroupPort known = group_port(port.name);
  Port own = port;
  own.name = known.port;
  gemm_exact_inputs(to_params(products_of(from_params<GroupedGemmParams>(values)).at(known.group)), own, drawn);
}

double grouped_flops(const Params& values) {
  double flops = 0;
  for (const GemmParams& product : products_of(from_params<GroupedGemmParams>(values))) {
    flops += gemm().flops(to_params(product));
  }
  return flops;
}

bool grouped_reduces_along_rows(const Params& values, std::string_view port) {
  const auto p = from_params<GroupedGemmParams>(values);
  const std::string_view plain = group_port(port).port;
  return plain == "a" ? p.trans_a : plain == "b" && !p.trans_b;
}

}  // namespace

std::vector<GemmParams> products_of(const GroupedGemmParams& params) {
  const Sizes sizes(params);
  if (!sizes.mistakes.empty()) {
    throw core::InternalError(sizes.mistakes.front());
  }
  std::vector<GemmParams> products(sizes.groups);
  for (std::size_t group = 0; group < products.size(); ++group) {
    GemmParams& p = products[group];
    p.m = sizes.m[group];
    p.n = sizes.n[group];
    p.k = sizes.k[group];
    p.trans_a = params.trans_a;
    p.trans_b = params.trans_b;
    p.alpha = params.alpha;
    p.beta = params.beta;
    p.in_place = params.in_place;
    p.bias = params.bias;
    p.epilogue = params.epilogue;
    p.output = params.output;
    p.accumulate = params.accumulate;
    p.scaling = params.scaling;
    p.power_of_two = params.power_of_two;
  }
  return products;
}

std::string_view name_in_group(std::string_view port, std::size_t group) {
  const auto found = all_names().names_.find({port, group});
  if (found == all_names().names_.end()) {
    throw core::InternalError(fmt::format("grouped_gemm has no port {} of group {}", port, group));
  }
  return found->second;
}

std::optional<GroupPort> find_group_port(std::string_view name) {
  const auto found = all_names().ports_.find(name);
  return found == all_names().ports_.end() ? std::nullopt : std::optional(found->second);
}

GroupPort group_port(std::string_view name) {
  const std::optional<GroupPort> found = find_group_port(name);
  if (!found.has_value()) {
    throw core::InternalError(fmt::format("grouped_gemm has no port {}", name));
  }
  return *found;
}

std::vector<Port> ports_of_group(std::span<const Port> ports, std::size_t group) {
  std::vector<Port> own;
  for (Port port : ports) {
    if (const GroupPort known = group_port(port.name); known.group == group) {
      port.name = known.port;
      port.of = port.role == Role::scale || port.role == Role::amax ? group_port(port.of).port : std::string_view();
      port.scaled_by = port.scaled_by.empty() ? std::string_view() : group_port(port.scaled_by).port;
      own.push_back(port);
    }
  }
  return own;
}

std::vector<Operand> operands_of_group(std::span<const Operand> operands, std::size_t group) {
  std::vector<Operand> own;
  for (Operand operand : operands) {
    if (const GroupPort known = group_port(operand.port); known.group == group) {
      operand.port = known.port;
      own.push_back(operand);
    }
  }
  return own;
}

bool promotes_sums(const Op& op, const Params& params, const Mode& mode) {
  if (&op == &gemm()) {
    return gemm_promotes(from_params<GemmParams>(params), mode);
  }
  const std::vector<GemmParams> products =
      &op == &grouped_gemm() ? products_of(from_params<GroupedGemmParams>(params)) : std::vector<GemmParams>();
  return std::ranges::any_of(products, [&mode](const GemmParams& product) { return gemm_promotes(product, mode); });
}

std::vector<Operand> operands_behind(const Op& op, std::span<const Operand> operands, std::string_view output) {
  return &op == &grouped_gemm() ? operands_of_group(operands, group_port(output).group)
                                : std::vector<Operand>(operands.begin(), operands.end());
}

bool is_product(const Op& op) {
  return &op == &gemm() || &op == &grouped_gemm();
}

std::optional<Product> product_behind(const Op& op, const Params& params, std::string_view output) {
  if (&op == &gemm() && output == "d") {
    return Product{from_params<GemmParams>(params), "a", "b", "c", "bias", "d", "a_scale_inv", "b_scale_inv"};
  }
  if (&op != &grouped_gemm() || group_port(output).port != "d") {
    return {};
  }
  const std::size_t group = group_port(output).group;
  return Product{products_of(from_params<GroupedGemmParams>(params)).at(group),
                 name_in_group("a", group),
                 name_in_group("b", group),
                 name_in_group("c", group),
                 name_in_group("bias", group),
                 output,
                 name_in_group("a_scale_inv", group),
                 name_in_group("b_scale_inv", group),
                 group};
}

double scale_of_sums(const GemmParams& product, std::span<const Operand> operands) {
  return std::abs(product.alpha) * operand_named(operands, "a").scale * operand_named(operands, "b").scale;
}

const Op& grouped_gemm() {
  static const Op op{
      .name = "grouped_gemm",
      .summary = "matrix products of different sizes in one call, as experts of a mixture need them",
      .formula =
          "D_g = f(alpha * op(A_g) * op(B_g) + beta * C_g + bias_g) for every group g, f = identity, relu or gelu",
      .source = "cuBLAS manual, cublasGemmGroupedBatchedEx; TransformerEngine gemm.h, nvte_multi_tensor_gemm",
      .fields = &fields_of<GroupedGemmParams>,
      .modes = kModeNames,
      .ports = &grouped_ports,
      .check = &grouped_check,
      .exact_plan = &grouped_exact_plan,
      .exact_inputs = &grouped_exact_inputs,
      .flops = &grouped_flops,
      .reduces_along_rows = &grouped_reduces_along_rows,
      .statistics = kProductStatistics,
      .multiplies_matrices = true,
  };
  return op;
}

}  // namespace numcheck::op
