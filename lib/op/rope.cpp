#include "op/rope.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports_of(const RopeParams& p, const Mode& mode, std::string_view in, std::string_view out) {
  const std::int64_t rows = p.seq * p.batch * p.heads;
  Port freqs = dense_port("freqs", Role::input, core::Dtype::fp32, p.start + p.seq, p.rotated(), "angles");
  freqs.fill = Fill::computed;
  std::vector<Port> ports = {dense_port(in, Role::input, mode.first, rows, p.dim, "heads of all tokens"), freqs};
  if (p.start > 0) {
    Port starts = dense_port("start_positions", Role::input, core::Dtype::int32, p.batch, 1,
                             "row of freqs of each sequence's first token");
    starts.fill = Fill::computed;
    ports.push_back(starts);
  }
  ports.push_back(dense_port(out, Role::output, mode.output, rows, p.dim, "rotated heads"));
  return ports;
}

std::vector<std::string> check(const Params& values, const Mode&) {
  const auto p = from_params<RopeParams>(values);
  std::vector<std::string> mistakes;
  if (p.rotated() % 2 != 0) {
    mistakes.push_back("rope: " + std::to_string(p.rotated()) +
                       " rotated channels do not form pairs; use an even number");
  }
  if (p.rotated() > p.dim) {
    mistakes.push_back("rope: rotary " + std::to_string(p.rotary) + " is more than the " + std::to_string(p.dim) +
                       " channels of a head");
  }
  constexpr double kMaxElements = 0x1p40;
  if (static_cast<double>(p.seq) * static_cast<double>(p.batch) * static_cast<double>(p.heads) *
          static_cast<double>(p.dim) >
      kMaxElements) {
    mistakes.emplace_back("rope: x has more than 2^40 elements");
  }
  return mistakes;
}

ExactPlan exact_plan(const Params&, const Mode&) {
  return no_exact_leg("sines and cosines are irrational: no result is exact");
}

double flops(const Params& values) {
  const auto p = from_params<RopeParams>(values);
  return 3.0 * static_cast<double>(p.seq * p.batch) * static_cast<double>(p.heads * p.dim);
}

}  // namespace

const Op& rope_fwd() {
  static const Op op{
      .name = "rope_fwd",
      .summary = "rotary position embedding",
      .formula = "y = x cos(theta) + rotate(x) sin(theta) on the first `rotary` channels, theta = freqs[start + s]",
      .source = "TransformerEngine fused_rope.h, nvte_fused_rope_forward",
      .fields = &fields_of<RopeParams>,
      .modes = storage_modes(),
      .ports = [](const Params& values,
                  const Mode& mode) { return ports_of(from_params<RopeParams>(values), mode, "x", "y"); },
      .check = &check,
      .exact_plan = &exact_plan,
      .flops = &flops,
  };
  return op;
}

const Op& rope_bwd() {
  static const Op op{
      .name = "rope_bwd",
      .summary = "gradient of the rotary position embedding",
      .formula = "dx = dy cos(theta) - rotate(dy sin(theta)): the transpose of the forward",
      .source = "TransformerEngine fused_rope.h, nvte_fused_rope_backward",
      .fields = &fields_of<RopeParams>,
      .modes = storage_modes(),
      .ports = [](const Params& values,
                  const Mode& mode) { return ports_of(from_params<RopeParams>(values), mode, "dy", "dx"); },
      .check = &check,
      .exact_plan = &exact_plan,
      .flops = &flops,
  };
  return op;
}

}  // namespace numcheck::op
