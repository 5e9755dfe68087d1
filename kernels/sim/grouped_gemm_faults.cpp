#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/sim/fault_table.hpp"
#include "kernels/sim/grouped_gemm.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::sim {
namespace {

bool has_outputs(const GroupTask& group) {
  return group.gemm.params.m != 0 && group.gemm.params.n != 0;
}

bool has_products(const GroupTask& group) {
  return has_outputs(group) && group.gemm.params.k != 0 && group.gemm.params.alpha != 0;
}

bool has_same_a(const GroupTask& x, const GroupTask& y) {
  return x.gemm.params.m == y.gemm.params.m && x.gemm.params.k == y.gemm.params.k;
}

bool has_same_b(const GroupTask& x, const GroupTask& y) {
  return x.gemm.params.n == y.gemm.params.n && x.gemm.params.k == y.gemm.params.k;
}

bool has_same_scales(const GroupTask& x, const GroupTask& y) {
  return !op::has_line_scales(x.gemm.params) || (has_same_a(x, y) && has_same_b(x, y));
}

/// A fault is in the groups that `is_hit` chooses, by position.
struct Fault {
  FaultInfo info;
  std::string_view needs;  ///< what the case lacks if no group is hit
  bool (*is_hit)(const GroupTasks&, std::size_t group);
  void (*plant)(GroupTasks&, std::size_t group);
};

/// The last group for which `holds`, or no group's number.
std::size_t last_with(const GroupTasks& groups, bool (*holds)(const GroupTask&)) {
  const auto found = std::find_if(groups.rbegin(), groups.rend(), holds);
  return found == groups.rend() ? groups.size() : static_cast<std::size_t>(groups.rend() - found) - 1;
}

/// Whether the fault of a single product can be planted in that group.
bool takes(const GroupTask& group, std::string_view fault) {
  return has_products(group) && fault_obstacle(fault, group.gemm).empty();
}

constexpr std::string_view kTail = "missing_k_tail", kTranspose = "transposed_output", kTf32 = "tf32_silently",
                           kRounded = "product_rounded", kFast = "fast_accumulation";

constexpr std::array kFaults = {
    Fault{{"group_off_by_one", "groups multiply the operands of the group before, where these have their shapes"},
          "no group has the shape of the one before",
          [](const GroupTasks& all, std::size_t g) {
            return g != 0 && has_products(all[g]) && has_same_a(all[g], all[g - 1]) && has_same_b(all[g], all[g - 1]);
          },
          [](GroupTasks& all, std::size_t g) { all[g].a_of = all[g].b_of = g - 1; }},
    Fault{{"first_group_b", "groups multiply the B of the first group, where it has the shape of theirs"},
          "no other group has a B with the shape of the first one",
          [](const GroupTasks& all, std::size_t g) {
            return g != 0 && has_products(all[g]) && has_same_b(all[g], all[0]);
          },
          [](GroupTasks& all, std::size_t g) { all[g].b_of = 0; }},
    Fault{{"first_group_k", "groups add up no more products than the first group"},
          "no group has a longer sum than the first one",
          [](const GroupTasks& all, std::size_t g) {
            return has_products(all[g]) && all[g].gemm.params.k > all[0].gemm.params.k;
          },
          [](GroupTasks& all, std::size_t g) { all[g].products = all[0].gemm.params.k; }},
    Fault{{"groups_after_empty_missing", "groups after an empty one are not written"},
          "no group follows an empty one",
          [](const GroupTasks& all, std::size_t g) {
            return has_outputs(all[g]) &&
                   !std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(g), has_outputs);
          },
          [](GroupTasks& all, std::size_t g) { all[g].runs = false; }},
    Fault{{"k0_group_unwritten", "groups without products are not written"},
          "all groups have products",
          [](const GroupTasks& all, std::size_t g) { return has_outputs(all[g]) && !has_products(all[g]); },
          [](GroupTasks& all, std::size_t g) { all[g].runs = false; }},
    Fault{{"k0_group_stale", "groups without products hold ones"},
          "all groups have products",
          [](const GroupTasks& all, std::size_t g) { return has_outputs(all[g]) && !has_products(all[g]); },
          [](GroupTasks& all, std::size_t g) { all[g].stale = true; }},
    Fault{{"last_group_missing", "the last group is not written"},
          "the last group is empty",
          [](const GroupTasks& all, std::size_t g) { return g + 1 == all.size() && has_outputs(all[g]); },
          [](GroupTasks& all, std::size_t g) { all[g].runs = false; }},
    Fault{{"last_group_k_tail", "the last product of every sum of the last group is left out"},
          "there are no products",
          [](const GroupTasks& all, std::size_t g) { return g == last_with(all, &has_products); },
          [](GroupTasks& all, std::size_t g) { all[g].fault = kTail; }},
    Fault{{"square_group_transposed", "the D of every square group is stored transposed"},
          "no group is square",
          [](const GroupTasks& all, std::size_t g) { return takes(all[g], kTranspose); },
          [](GroupTasks& all, std::size_t g) { all[g].fault = kTranspose; }},
    Fault{{"first_group_bias", "groups add the bias of the first group, where it has the length of theirs"},
          "no other group has a bias of the length of the first one's",
          [](const GroupTasks& all, std::size_t g) {
            return g != 0 && has_outputs(all[g]) && all[g].gemm.params.bias &&
                   all[g].gemm.params.n == all[0].gemm.params.n;
          },
          [](GroupTasks& all, std::size_t g) { all[g].bias_of = 0; }},
    Fault{{"first_group_scales", "groups multiply with the scales of the first group, where it has as many of them"},
          "no other group has as many scales of its operands as the first one",
          [](const GroupTasks& all, std::size_t g) {
            return g != 0 && has_products(all[g]) && all[g].gemm.mode->scaled && has_same_scales(all[g], all[0]);
          },
          [](GroupTasks& all, std::size_t g) { all[g].scales_of = 0; }},
    Fault{{"group_products_rounded", "products are rounded to the output's format before C is added"},
          "there are no 16-bit outputs with a C",
          [](const GroupTasks& all, std::size_t g) { return takes(all[g], kRounded); },
          [](GroupTasks& all, std::size_t g) { all[g].fault = kRounded; }},
    Fault{{"last_group_tf32", "FP32 operands of the last group are rounded to TF32 and multiplied on tensor cores"},
          "there are no FP32 products",
          [](const GroupTasks& all, std::size_t g) {
            return g == last_with(all, [](const GroupTask& group) { return takes(group, kTf32); });
          },
          [](GroupTasks& all, std::size_t g) { all[g].fault = kTf32; }},
    Fault{{"fast_accumulation", "FP8 sums are not promoted although split accumulation was requested"},
          "no FP8 sums are promoted",
          [](const GroupTasks& all, std::size_t g) { return takes(all[g], kFast); },
          [](GroupTasks& all, std::size_t g) { all[g].fault = kFast; }},
    Fault{{"last_group_fast", "FP8 sums of the last group are not promoted although split accumulation was requested"},
          "no FP8 sums are promoted",
          [](const GroupTasks& all, std::size_t g) {
            return g == last_with(all, [](const GroupTask& group) { return takes(group, kFast); });
          },
          [](GroupTasks& all, std::size_t g) { all[g].fault = kFast; }},
};

const Fault* find_fault(std::string_view name) noexcept {
  const auto* found = std::ranges::find_if(kFaults, [name](const Fault& fault) { return fault.info.name == name; });
  return found == kFaults.end() ? nullptr : found;
}

std::vector<std::size_t> hit_by(const Fault& fault, const GroupTasks& groups) {
  std::vector<std::size_t> hit;
  for (std::size_t group = 0; group < groups.size(); ++group) {
    if (fault.is_hit(groups, group)) {
      hit.push_back(group);
    }
  }
  return hit;
}

}  // namespace

std::span<const FaultInfo> group_faults() noexcept {
  static constexpr auto kInfos = [] {
    std::array<FaultInfo, kFaults.size()> infos;
    std::ranges::transform(kFaults, infos.begin(), &Fault::info);
    return infos;
  }();
  return kInfos;
}

std::string group_fault_obstacle(std::string_view fault, const GroupTasks& groups) {
  const Fault* found = find_fault(fault);
  if (found == nullptr) {
    throw core::InternalError(fmt::format("groups have no fault named {}", fault));
  }
  return hit_by(*found, groups).empty() ? fmt::format("the fault {} does not apply: {}", fault, found->needs) : "";
}

void plant_group_fault(const std::string& fault, GroupTasks& groups) {
  if (const Fault* found = find_fault(fault); found != nullptr) {
    for (const std::size_t group : hit_by(*found, groups)) {
      found->plant(groups, group);
    }
  } else if (const auto first = std::ranges::find_if(groups, has_outputs); first != groups.end()) {
    first->fault = fault;
  }
}

}  // namespace numcheck::kernels::sim
