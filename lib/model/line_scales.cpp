#include "model/line_scales.hpp"

#include <cstring>

namespace numcheck::model {
namespace {

std::vector<float> load(const op::BlockLayout& layout, const std::byte* stored, std::span<const std::int64_t> lines) {
  const op::ScaleSteps steps = layout.steps(op::scale_port(layout, op::Role::input).ld);
  std::vector<float> scales;
  scales.reserve(lines.size() * static_cast<std::size_t>(layout.across()));
  for (const std::int64_t line : lines) {
    const std::int64_t band = line / layout.block_rows;
    for (std::int64_t part = 0; part < layout.across(); ++part) {
      float scale = 0;
      const std::int64_t at = band * steps.down + part * steps.across;
      std::memcpy(&scale, stored + at * static_cast<std::int64_t>(sizeof scale), sizeof scale);
      scales.push_back(scale);
    }
  }
  return scales;
}

}  // namespace

LineScales load_line_scales(const op::GemmParams& params, const StoredScales& stored,
                            std::span<const std::int64_t> rows, std::span<const std::int64_t> columns) {
  const op::BlockLayout a = op::scales_of_a(params), b = op::scales_of_b(params);
  return {load(a, stored.a, rows), load(b, stored.b, columns), a.across(), op::scaled_products(params)};
}

}  // namespace numcheck::model
