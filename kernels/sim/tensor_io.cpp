#include "kernels/sim/tensor_io.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "data/inputs.hpp"
#include "kernels/sim/perturbation.hpp"

namespace numcheck::kernels::sim {
namespace {

using core::Dtype;

constexpr std::array kStoreFaults = {
    FaultInfo{"truncated_output", "a 16- or 8-bit output is truncated instead of rounded"},
    FaultInfo{"double_rounded_output", "a BF16 or 8-bit output is rounded to FP16 first"},
    FaultInfo{"bf16_output_in_fp32", "an FP32 output holds numbers rounded to BF16"},
    FaultInfo{"output_scale_1_01", "outputs are 1.01 times what they should be"},
    FaultInfo{"saturate_missing", "an FP8 output beyond the largest number becomes NaN or infinity"},
    FaultInfo{"stale_amax", "amax is that of an earlier, smaller tensor"},
    FaultInfo{"nan_dropped", "NaN outputs become zero"},
    FaultInfo{"last_row_stale", "the last row is not computed: it holds zeros"},
};

constexpr float kStaleAmax = 0.75F;  // amax of a tensor that was three quarters as large

const PortMemory* describing(std::span<const PortMemory> ports, op::Role role, std::string_view of) {
  const auto found =
      std::ranges::find_if(ports, [&](const PortMemory& p) { return p.port->role == role && p.port->of == of; });
  return found == ports.end() ? nullptr : &*found;
}

bool is_byte_float(Dtype dtype) {
  return core::dtype_info(dtype).storage_bytes == 1 && !core::is_integer(dtype);
}

bool is_narrow(Dtype dtype) {
  return core::dtype_info(dtype).storage_bytes < 4 && !core::is_integer(dtype);
}

/// Whether the fault can change a port of that format.
bool touches(std::string_view fault, const op::Port& port) {
  if (fault == "stale_amax") {
    return port.role == op::Role::amax;
  }
  const bool is_scale = port.dtype == Dtype::e8m0;
  if (port.role != op::Role::output || port.elements() == 0 || core::is_integer(port.dtype) || is_scale) {
    return false;
  }
  if (!port.scaled_by.empty() && (fault == "double_rounded_output" || fault == "saturate_missing")) {
    return false;  // block scales are chosen so that nothing saturates; codes have their own fault for rounding
  }
  if (fault == "truncated_output") {
    return is_narrow(port.dtype);
  }
  if (fault == "double_rounded_output") {
    return port.dtype == Dtype::bf16 || is_byte_float(port.dtype);
  }
  if (fault == "bf16_output_in_fp32") {
    return port.dtype == Dtype::fp32;
  }
  return fault != "saturate_missing" || is_byte_float(port.dtype);
}

/// What happens to a value on its way into memory.
struct Store {
  float factor = 1;  ///< quantisation scale
  float wrong = 1;
  std::string_view fault;
  Dtype dtype = Dtype::fp32;

  [[nodiscard]] double operator()(double given) const {
    if (fault == "nan_dropped" && std::isnan(given)) {
      return 0;
    }
    const auto value = static_cast<float>(given);
    double x = factor == 1 && wrong == 1 ? given : static_cast<double>(value * wrong * factor);
    if (fault == "double_rounded_output" && (dtype == Dtype::bf16 || is_byte_float(dtype))) {
      x = core::round_to(x, Dtype::fp16);
    } else if (fault == "bf16_output_in_fp32" && dtype == Dtype::fp32) {
      x = core::round_to(x, Dtype::bf16);
    }
    return x;
  }
};

}  // namespace

std::vector<float> read_floats(std::span<const PortMemory> ports, std::string_view name) {
  const PortMemory& memory = port_memory(ports, name);
  const core::Buffer<double> values = data::load_port(*memory.port, {memory.data, memory.port->extent_bytes()});
  std::vector<float> floats(values.size());
  std::ranges::transform(values.span(), floats.begin(), [](double x) { return static_cast<float>(x); });
  return floats;
}

std::span<const FaultInfo> store_faults() noexcept {
  return kStoreFaults;
}

std::string store_fault_obstacle(std::string_view fault, std::span<const op::Port> ports) {
  if (std::ranges::any_of(ports, [fault](const op::Port& port) { return touches(fault, port); })) {
    return {};
  }
  return fmt::format("the fault {} does not apply: no output of this case can show it", fault);
}

void write_floats(std::span<const PortMemory> ports, std::string_view name, std::span<const float> values,
                  std::string_view fault) {
  const PortMemory& memory = port_memory(ports, name);
  const op::Port& port = *memory.port;
  if (!touches(fault, port) && fault != "stale_amax") {
    fault = {};
  }
  Store store{.fault = fault, .dtype = port.dtype};
  store.wrong = fault == "output_scale_1_01" ? 1.01F : 1.0F;
  if (const PortMemory* scale = describing(ports, op::Role::scale, name); scale != nullptr) {
    std::memcpy(&store.factor, scale->data + scale->port->offset_bytes, sizeof store.factor);
  }
  const bool truncates = fault == "truncated_output";
  const bool saturates = is_byte_float(port.dtype) && fault != "saturate_missing";
  const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const std::int64_t all_rows = port.batch * port.rows;
  const std::optional<model::Perturbation> perturbation = perturbation_of(fault, port, ports);
  std::vector<double> line(static_cast<std::size_t>(port.cols));
  for (std::int64_t row = 0; row < all_rows; ++row) {
    const std::int64_t first = row / port.rows * port.batch_stride + row % port.rows * port.ld;
    const bool stale = fault == "last_row_stale" && row == all_rows - 1;
    std::ranges::copy(values.subspan(static_cast<std::size_t>(row) * line.size(), line.size()), line.begin());
    if (perturbation) {
      perturbation->apply(row, line);
    }
    for (std::int64_t col = 0; col < port.cols; ++col) {
      const double x = stale ? 0 : store(line[static_cast<std::size_t>(col)]);
      const std::uint64_t word =
          core::encode(x, port.dtype, saturates ? core::Overflow::saturate : core::Overflow::ieee,
                       truncates ? core::Rounding::toward_zero : core::Rounding::nearest_even);
      std::memcpy(memory.data + port.offset_bytes + static_cast<std::size_t>(first + col) * width, &word, width);
    }
  }
  write_amax(ports, name, values, fault);
}

void write_amax(std::span<const PortMemory> ports, std::string_view of, std::span<const float> values,
                std::string_view fault) {
  const PortMemory* amax = describing(ports, op::Role::amax, of);
  if (amax == nullptr) {
    return;
  }
  float largest = 0;
  for (const float value : values) {
    largest = std::fmax(largest, std::fabs(value));
  }
  largest = perturbed_amax(fault, fault == "stale_amax" ? kStaleAmax * largest : largest);
  std::memcpy(amax->data + amax->port->offset_bytes, &largest, sizeof largest);
}

float block_sum(std::size_t count, const std::function<float(std::size_t)>& term) {
  constexpr std::size_t kLanes = 128;
  std::array<float, kLanes> lanes{};
  for (std::size_t i = 0; i < count; ++i) {
    lanes[i % kLanes] += term(i);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  return lanes[0];
}

Algorithm host_algorithm(const Call& call, std::string evidence,
                         std::function<void(std::span<const PortMemory>)> compute) {
  Algorithm algorithm;
  algorithm.label = "FP32 arithmetic on the host";
  algorithm.details = {{"evidence", std::move(evidence)}};
  if (!call.inject.empty()) {
    algorithm.details.emplace_back("fault", call.inject);
  }
  algorithm.launch = [compute = std::move(compute)](std::span<const PortMemory> ports, std::byte*) {
    compute(ports);
    return not_measured();
  };
  return algorithm;
}

}  // namespace numcheck::kernels::sim
