#include "op/mxfp8.hpp"

#include "core/error.hpp"

namespace numcheck::op {
namespace {

constexpr std::string_view kPrefix = "mxfp8_";

std::int64_t blocks_of(std::int64_t elements) noexcept {
  return (elements + kMxfp8Block - 1) / kMxfp8Block;
}

}  // namespace

bool is_mxfp8(std::string_view output) noexcept {
  return output.starts_with(kPrefix);
}

core::Dtype mxfp8_codes(std::string_view output) {
  const auto codes = core::parse_dtype("fp8_" + std::string(output.substr(kPrefix.size())));
  if (!is_mxfp8(output) || !codes.has_value()) {
    throw core::InternalError("no MXFP8 output: " + std::string(output));
  }
  return *codes;
}

bool has_rowwise(std::string_view layout) noexcept {
  return layout != "columnwise";
}

bool has_columnwise(std::string_view layout) noexcept {
  return layout != "rowwise";
}

Mxfp8Grid rowwise_grid(std::int64_t rows, std::int64_t cols) noexcept {
  return {rows, blocks_of(cols)};
}

Mxfp8Grid columnwise_grid(std::int64_t rows, std::int64_t cols) noexcept {
  return {blocks_of(rows), cols};
}

void add_mxfp8_output(std::vector<Port>& ports, const Port& output, const Mxfp8Names& names, std::string_view layout) {
  const auto add = [&](std::string_view name, std::string_view scales, const Mxfp8Grid& grid, bool along_rows) {
    Port codes = output;
    codes.name = name;
    codes.scaled_by = scales;
    (along_rows ? codes.block_cols : codes.block_rows) = kMxfp8Block;
    ports.push_back(codes);
    ports.push_back(dense_port(
        scales, Role::output, core::Dtype::e8m0, grid.rows, grid.cols,
        along_rows ? "powers of two, one per 32 codes of a row" : "powers of two, one per 32 codes of a column"));
  };
  if (has_rowwise(layout)) {
    add(names.rowwise, names.rowwise_scales, rowwise_grid(output.rows, output.cols), true);
  }
  if (has_columnwise(layout)) {
    add(names.columnwise, names.columnwise_scales, columnwise_grid(output.rows, output.cols), false);
  }
}

std::vector<std::string> check_layout(std::string_view op, const std::string& output, const std::string& layout) {
  if (is_mxfp8(output) || layout == "rowwise") {
    return {};
  }
  return {std::string(op) + ": layout applies to the outputs mxfp8_e4m3 and mxfp8_e5m2 only, not to " + output};
}

}  // namespace numcheck::op
