#include "op/nvfp4.hpp"

#include <fmt/format.h>

#include "op/mxfp8.hpp"
#include "op/quantize.hpp"

namespace numcheck::op {
namespace {

constexpr std::string_view kFormat = "fp4_e2m1";
constexpr std::int64_t kCodesPerByte = 2;

void check_format(std::string_view op, const std::string& format, std::vector<std::string>& mistakes) {
  if (format != kFormat) {
    mistakes.push_back(fmt::format("{}: the codes of nvfp4 are E2M1 numbers: set format to {}", op, kFormat));
  }
}

void check_even(std::string_view op, std::int64_t length, std::string_view what, std::vector<std::string>& mistakes) {
  if (length % kCodesPerByte != 0) {
    mistakes.push_back(
        fmt::format("{}: nvfp4 has two codes of a {} in a byte, so that their number must be even, and it is {}", op,
                    what, length));
  }
}

Port global_amax(std::string_view name, std::string_view doc) {
  Port port = dense_port(name, Role::input, core::Dtype::fp32, 1, 1, doc);
  port.fill = Fill::computed;
  return port;
}

Port code_bytes(const BlockLayout& layout, Role role) {
  const std::int64_t lines = layout.codes_transposed ? layout.cols : layout.rows;
  const std::int64_t length = layout.codes_transposed ? layout.rows : layout.cols;
  return dense_port(layout.codes, role, core::Dtype::uint8, lines, length / kCodesPerByte,
                    layout.codes_transposed ? "codes, transposed, two in a byte, the first in its low half"
                                            : "codes, two in a byte, the first in its low half");
}

}  // namespace

std::vector<std::string> check_nvfp4(const QuantizeParams& p) {
  std::vector<std::string> mistakes;
  check_format("quantize", p.format, mistakes);
  if (has_rowwise(p.layout)) {
    check_even("quantize", p.cols, "row", mistakes);
  }
  if (has_columnwise(p.layout)) {
    check_even("quantize", p.rows, "column", mistakes);
  }
  if (p.hadamard && (p.rows % kNvfp4Block != 0 || p.block_shape != "1x16")) {
    mistakes.push_back(
        "quantize: hadamard transforms blocks of 16 elements of a column: set block_shape to 1x16 and rows to a "
        "multiple of 16");
  }
  return mistakes;
}

std::vector<std::string> check_nvfp4(const DequantizeParams& p) {
  std::vector<std::string> mistakes;
  check_format("dequantize", p.format, mistakes);
  check_even("dequantize", p.cols, "row", mistakes);
  return mistakes;
}

std::vector<Port> nvfp4_ports(const QuantizeParams& p, core::Dtype input) {
  std::vector<Port> ports = {dense_port("x", Role::input, input, p.rows, p.cols, "tensor to quantise"),
                             global_amax("global_amax", "max |x|, from which the scales of blocks follow")};
  if (p.hadamard) {
    ports.push_back(global_amax("global_amax_t", "the same of the transformed columns"));
  }
  for (const BlockLayout& layout : p.layouts()) {
    ports.push_back(code_bytes(layout, Role::output));
    ports.push_back(scale_port(layout, Role::output));
  }
  return ports;
}

std::vector<Port> nvfp4_ports(const DequantizeParams& p, core::Dtype output) {
  const BlockLayout layout = p.blocks();
  Port codes = code_bytes(layout, Role::input);
  Port scales = scale_port(layout, Role::input);
  Port amax = global_amax("q_global_amax", "amax of the tensor that was quantised");
  codes.fill = scales.fill = amax.fill = Fill::derived;
  return {codes, scales, amax, dense_port("y", Role::output, output, p.rows, p.cols, "values")};
}

}  // namespace numcheck::op
