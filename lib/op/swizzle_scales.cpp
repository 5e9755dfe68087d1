#include "op/swizzle_scales.hpp"

#include <array>

#include <fmt/format.h>

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode&) {
  const auto p = from_params<SwizzleScalesParams>(values);
  const auto [rows, cols] = p.lines_are_inner() ? std::array{p.blocks(), p.lines()} : std::array{p.lines(), p.blocks()};
  Port scales = dense_port("scales", Role::input, core::Dtype::uint8, rows, cols, "bytes of the scales");
  scales.fill = Fill::derived;
  return {scales, dense_port("swizzled", Role::output, core::Dtype::uint8, p.tiles(), SwizzleScalesParams::kTileBytes,
                             "tiles of 128 x 4 scales, padded with zeros")};
}

double scales_moved(const Params& values) {
  const auto p = from_params<SwizzleScalesParams>(values);
  return static_cast<double>(p.rows) * static_cast<double>(p.cols) / static_cast<double>(p.block());
}

std::vector<std::string> check(const Params& values, const Mode&) {
  constexpr double kMaxScales = 0x1p32;
  const auto p = from_params<SwizzleScalesParams>(values);
  std::vector<std::string> mistakes;
  const std::int64_t length = p.is_columnwise() ? p.rows : p.cols;
  if (length % p.block() != 0) {
    mistakes.push_back(fmt::format("swizzle_scales: {} with recipe {} must be a multiple of {}, and {} is not",
                                   p.is_columnwise() ? "rows of the layout columnwise" : "cols of the layout rowwise",
                                   p.recipe, p.block(), length));
  }
  if (scales_moved(values) > kMaxScales) {
    mistakes.emplace_back("a tensor of this case has more than 2^32 scales");
  }
  return mistakes;
}

}  // namespace

const Op& swizzle_scales() {
  static constexpr std::array<std::string_view, 1> kModes = {"fp32"};
  static const Op op{
      .name = "swizzle_scales",
      .summary = "scales of MXFP8 and NVFP4 in the order in which tensor cores read them, padded with zeros",
      .formula =
          "swizzled[floor(l / 128) T + floor(i / 4)][16 (l mod 32) + 4 floor((l mod 128) / 32) + i mod 4] = "
          "scale of block i of line l",
      .source =
          "cuBLAS manual, 1D block scaling factors layout; TransformerEngine swizzle.h, "
          "nvte_swizzle_scaling_factors",
      .fields = &fields_of<SwizzleScalesParams>,
      .modes = kModes,
      .ports = &ports,
      .check = &check,
      .exact_plan = &small_integers,
      .flops = &scales_moved,
  };
  return op;
}

}  // namespace numcheck::op
