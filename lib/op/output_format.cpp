#include "op/output_format.hpp"

#include <array>

#include "op/mxfp8.hpp"

namespace numcheck::op {

core::Dtype output_dtype(const std::string& parameter, const Mode& mode) {
  return is_mxfp8(parameter) ? mxfp8_codes(parameter) : core::parse_dtype(parameter).value_or(mode.output);
}

std::span<const std::string_view> storage_modes() noexcept {
  static constexpr std::array<std::string_view, 4> kModes = {"fp32", "tf32", "bf16", "fp16"};
  return kModes;
}

std::vector<std::string> check_output(std::string_view op, const std::string& parameter, const Mode& mode) {
  const core::Dtype output = output_dtype(parameter, mode);
  const bool legal = mode.first == core::Dtype::fp32 || output == mode.first || core::is_fp8(output);
  if (legal) {
    return {};
  }
  const std::string own(core::dtype_info(mode.first).name);
  return {std::string(op) + ": mode " + std::string(mode.name) + " has no output \"" + parameter + "\"; it has " + own +
          " and FP8"};
}

void add_output(std::vector<Port>& ports, const Port& output, std::string_view scale_name, std::string_view amax_name) {
  const bool quantised = core::is_fp8(output.dtype);
  if (quantised) {
    ports.push_back(scalar_port(scale_name, Role::scale, output.name, "codes = sat(RN(value * scale))"));
  }
  ports.push_back(output);
  if (quantised) {
    ports.push_back(scalar_port(amax_name, Role::amax, output.name, "max |value| before the scale"));
  }
}

}  // namespace numcheck::op
