#include "model/line_scales.hpp"

#include <cstring>

#include "core/codec.hpp"
#include "core/dtype.hpp"

namespace numcheck::model {
namespace {

std::vector<float> load(const op::BlockLayout& layout, const std::byte* stored, std::span<const std::int64_t> lines) {
  const op::ScaleSteps steps = layout.steps(op::scale_port(layout, op::Role::input).ld);
  const auto size = static_cast<std::int64_t>(core::dtype_info(layout.scale_format).storage_bytes);
  std::vector<float> scales;
  scales.reserve(lines.size() * static_cast<std::size_t>(layout.across()));
  for (const std::int64_t line : lines) {
    const std::int64_t band = line / layout.block_rows;
    for (std::int64_t part = 0; part < layout.across(); ++part) {
      const std::int64_t at = band * steps.down + part * steps.across;
      std::uint64_t word = 0;
      std::memcpy(&word, stored + at * size, static_cast<std::size_t>(size));
      scales.push_back(static_cast<float>(core::decode(word, layout.scale_format)));
    }
  }
  return scales;
}

}  // namespace

LineScales load_line_scales(const op::GemmParams& params, const StoredScales& stored,
                            std::span<const std::int64_t> rows, std::span<const std::int64_t> columns) {
  const op::BlockLayout a = op::scales_of_a(params), b = op::scales_of_b(params);
  return {load(a, stored.a, rows),
          load(b, stored.b, columns),
          a.across(),
          op::scaled_products(params),
          op::has_scales_in_products(params) && !op::has_global_scales(params),
          op::has_global_scales(params)};
}

}  // namespace numcheck::model
