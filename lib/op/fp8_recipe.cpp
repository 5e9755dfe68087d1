#include "op/fp8_recipe.hpp"

#include <array>

namespace numcheck::op {
namespace {

constexpr core::Dtype kFp32 = core::Dtype::fp32;

/// The histories of all modules, one after the other; an element a row apart is the same tensor's next amax.
Port history_port(std::string_view name, Role role, const Fp8RecipeParams& p, std::string_view doc) {
  Port port = dense_port(name, role, kFp32, p.history, p.tensors, doc);
  port.batch = p.modules;
  return port;
}

Port derived(Port port) {
  port.fill = Fill::derived;
  return port;
}

/// Of the other courses, the history is empty whatever is drawn.
bool draws_history(const Fp8RecipeParams& p) {
  return p.course == "restart_with_state" || p.course == "calibration";
}

std::vector<Port> ports(const Params& values, const Mode&) {
  const auto p = from_params<Fp8RecipeParams>(values);
  Port scale = dense_port("scale", Role::input, kFp32, p.modules, p.tensors, "scales of the first step");
  scale.fill = Fill::computed;
  Port history = history_port("history", Role::input, p, "amaxes of earlier steps");
  history.fill = draws_history(p) ? Fill::derived : Fill::computed;
  std::vector<Port> list = {
      history, scale,
      derived(dense_port("amaxes", Role::input, kFp32, p.steps, p.scales(), "largest magnitudes of every step"))};
  if (p.reduces()) {
    list.push_back(derived(dense_port("reduced", Role::input, kFp32, p.steps, p.scales(), "the larger of two ranks'")));
  }
  list.push_back(dense_port("scales", Role::output, kFp32, p.steps + 1, p.scales(),
                            "the scale used in every step, then the next one"));
  list.push_back(dense_port("scale_invs", Role::output, kFp32, p.steps, p.scales(), "1 / scale of every step"));
  list.push_back(history_port("new_history", Role::output, p, "amaxes after the last step"));
  return list;
}

std::vector<std::string> check(const Params& values, const Mode&) {
  constexpr double kMaxElements = 0x1p40;
  const auto p = from_params<Fp8RecipeParams>(values);
  std::vector<std::string> mistakes;
  if (p.second_rank && !p.reduces()) {
    mistakes.emplace_back("fp8_recipe: amaxes of a second rank are reduced only with kernel after_reduction");
  }
  const auto scales = static_cast<double>(p.scales());
  if (scales * static_cast<double>(p.steps) > kMaxElements || scales * static_cast<double>(p.history) > kMaxElements) {
    mistakes.emplace_back("a tensor of this case has more than 2^40 elements");
  }
  return mistakes;
}

/// Comparing every remembered amax in every step.
double flops(const Params& values) {
  const auto p = from_params<Fp8RecipeParams>(values);
  return static_cast<double>(p.scales()) * static_cast<double>(p.steps) * static_cast<double>(p.history);
}

}  // namespace

namespace {

constexpr std::string_view kRules =
    R"(one step of a tensor with the history h[0] .. h[L-1]; RN32 throughout, MAX = 448 or 57344:
  h[0] = amax of the step; last = h[0], or with kernel = after_reduction the amax over all ranks where that is not 0
  M = max(last, h[1] .. h[L-1]), NaN dropped; with algorithm = most_recent: last
  scale' = RN32(MAX RN32(2^-margin)) / M if 0 < M < infinity, else scale; FLT_MAX if that overflows
  history' = 0, h[2] .. h[L-1], last
  a module that did not run (last = 0): after_reduction keeps history and scale, single rolls the history and keeps the scale
courses, by which amaxes of the steps are multiplied:
  steady                 1
  drifting               falls evenly from 1 to 2^-12
  spiking                1, but 2^10 in step floor(steps / 4)
  vanishing              falls evenly from 1 to 2^-168: quotients overflow, then amaxes underflow to 0
  special                1, but of 16 amaxes 4 are 0, and one each a subnormal, infinity, NaN, FLT_MAX and one whose quotient overflows
  restart_with_state     2^-10; history and scale are those of an earlier series of this level
  restart_without_state  2^-10; the history is empty and the scale 1
  calibration            2^-10; tensors with even numbers (inputs, weights) start with an amax from calibrating, but the scale 1;
                         those with odd numbers (gradients) were not calibrated
)";

}  // namespace

const Op& fp8_recipe() {
  static constexpr std::array<std::string_view, 1> kModes = {"fp32"};
  static constexpr std::array<std::string_view, 3> kStatistics = {"largest scaled amax", "smallest scaled amax",
                                                                  "steps that lose 3 dB"};
  static const Op op{
      .name = "fp8_recipe",
      .summary = "delayed scaling over a series of steps: amax histories and the scales that follow from them",
      .formula =
          "scale' = MAX 2^-margin / max(amax history) if that is finite and above 0, else scale; the history is rolled",
      .source = "TransformerEngine recipe.h, nvte_delayed_scaling_recipe_amax_and_scale_update",
      .fields = &fields_of<Fp8RecipeParams>,
      .modes = kModes,
      .ports = &ports,
      .check = &check,
      .exact_plan = &small_integers,
      .flops = &flops,
      .rules = kRules,
      .statistics = kStatistics,
  };
  return op;
}

}  // namespace numcheck::op
