#include "op/quantize.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

using core::Dtype;

Dtype format_of(const std::string& name, Dtype fallback) {
  return core::parse_dtype(name).value_or(fallback);
}

template <class P>
double elements(const Params& values) {
  const auto p = from_params<P>(values);
  return static_cast<double>(p.rows) * static_cast<double>(p.cols);
}

template <class P>
std::vector<std::string> check(const Params& values, const Mode&) {
  constexpr double kMaxElements = 0x1p40;
  return elements<P>(values) <= kMaxElements
             ? std::vector<std::string>()
             : std::vector<std::string>{"a tensor of this case has more than 2^40 elements"};
}

std::vector<Port> quantize_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<QuantizeParams>(values);
  const Dtype format = format_of(p.format, Dtype::fp8_e4m3);
  Port scale = dense_port("scale", Role::input, Dtype::fp32, 1, 1, "quantising scale");
  scale.fill = Fill::computed;
  std::vector<Port> ports = {dense_port("x", Role::input, mode.first, p.rows, p.cols, "tensor to quantise"), scale};
  if (p.layout != "columnwise") {
    ports.push_back(dense_port("q", Role::output, format, p.rows, p.cols, "codes"));
  }
  if (p.layout != "rowwise") {
    ports.push_back(dense_port("q_t", Role::output, format, p.cols, p.rows, "codes, transposed"));
  }
  Port amax = scalar_port("amax", Role::amax, "x", "max |x|");
  ports.push_back(amax);
  ports.push_back(dense_port("scale_inv", Role::output, Dtype::fp32, 1, 1, "1 / scale"));
  return ports;
}

std::vector<Port> dequantize_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<DequantizeParams>(values);
  return {dense_port("q", Role::input, format_of(p.format, Dtype::fp8_e4m3), p.rows, p.cols, "codes"),
          scalar_port("q_scale_inv", Role::scale, "q", "value = code * q_scale_inv"),
          dense_port("y", Role::output, mode.output, p.rows, p.cols, "values")};
}

std::vector<Port> transpose_ports(const Params& values, const Mode& mode) {
  const auto p = from_params<TransposeParams>(values);
  const Dtype format = format_of(p.format, mode.first);
  return {dense_port("x", Role::input, format, p.rows, p.cols, "tensor"),
          dense_port("y", Role::output, format, p.cols, p.rows, "its transpose")};
}

}  // namespace

const Op& quantize() {
  static const Op op{
      .name = "quantize",
      .summary = "cast to FP8 with a per-tensor scale, row-wise and transposed",
      .formula = "q = RN(sat(RN32(x scale))); amax = max |x|; scale_inv = RN32(1 / scale)",
      .source = "TransformerEngine cast.h, nvte_quantize",
      .fields = &fields_of<QuantizeParams>,
      .modes = storage_modes(),
      .ports = &quantize_ports,
      .check = &check<QuantizeParams>,
      .exact_plan = &small_integers,
      .flops = &elements<QuantizeParams>,
  };
  return op;
}

const Op& dequantize() {
  static const Op op{
      .name = "dequantize",
      .summary = "FP8 codes times their per-tensor scale",
      .formula = "y = RN(RN32(code scale_inv))",
      .source = "TransformerEngine cast.h, nvte_dequantize",
      .fields = &fields_of<DequantizeParams>,
      .modes = storage_modes(),
      .ports = &dequantize_ports,
      .check = &check<DequantizeParams>,
      .exact_plan = &small_integers,
      .flops = &elements<DequantizeParams>,
  };
  return op;
}

const Op& transpose() {
  static const Op op{
      .name = "transpose",
      .summary = "transpose of a matrix; only bytes are moved",
      .formula = "y_ji = x_ij",
      .source = "TransformerEngine transpose.h, nvte_transpose",
      .fields = &fields_of<TransposeParams>,
      .modes = storage_modes(),
      .ports = &transpose_ports,
      .check = &check<TransposeParams>,
      .exact_plan = &small_integers,
      .flops = &elements<TransposeParams>,
  };
  return op;
}

}  // namespace numcheck::op
