#include "kernels/harness/classify_sums.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/harness/port_image.hpp"
#include "op/gemm.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::harness {
namespace {

using model::PrecisionClass;

constexpr std::int64_t kInterval = 128;            // products that cuBLASLt sums before it promotes
constexpr double kLargeOfA = 128, kLargeOfB = 64;  // their product is 2^13
constexpr double kSmallOfA = 0.5, kSmallOfB = 1;
constexpr double kSurvives = static_cast<double>(kInterval) * kSmallOfA * kSmallOfB;

/// How many intervals lie between the first products and those of each row.
constexpr std::array<std::int64_t, 8> kDistances = {1, 2, 3, 4, 8, 16, 32, 64};

/// What the product of the operands' scales is during the probe: with gelu, a power of two that brings sums to where gelu is
/// straight, 32 to 64.
double scale_beside_probes(const op::GemmParams& p) {
  return p.epilogue == "gelu" ? std::ldexp(1.0, -1 - std::ilogb(p.alpha)) : 1;
}

class SumsProber {
 public:
  SumsProber(const Call& call, DeviceMemory& memory, std::span<const PortMemory> ports)
      : params_(op::from_params<op::GemmParams>(call.c->params)), memory_(memory), ports_(ports) {
    const std::int64_t last = (params_.k - 1) / kInterval;  // that of the last product
    for (std::size_t i = 0; i < kDistances.size() && kDistances[i] < last && std::cmp_less(i, params_.m); ++i) {
      distances_.push_back(kDistances[i]);
    }
  }

  void fill() {
    prepare_classification(memory_, ports_);
    for (const PortMemory& port : ports_) {
      if (port.port->role == op::Role::scale) {
        const float scale = port.port->of == "a" ? static_cast<float>(scale_beside_probes(params_)) : 1;
        memory_.upload(port.data + port.port->offset_bytes, std::as_bytes(std::span<const float, 1>(&scale, 1)));
      }
    }
    if (op::has_line_scales(params_)) {
      set_all("a_scale_inv", scale_beside_probes(params_));
      set_all("b_scale_inv", 1);
    }
    const double sign = params_.alpha < 0 ? -1 : 1;  // relu passes only positive sums
    put(false, 0, 0, {kLargeOfB});
    put(false, 0, params_.k - 1, {kLargeOfB});
    for (std::size_t i = 0; i < distances_.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      put(true, row, 0, {sign * kLargeOfA});
      put(true, row, params_.k - 1, {-sign * kLargeOfA});
      put(true, row, distances_[i] * kInterval, std::vector<double>(kInterval, sign * kSmallOfA));
      put(false, 0, distances_[i] * kInterval, std::vector<double>(kInterval, kSmallOfB));
    }
  }

  /// Asks for the sums of the first column, which are there once the device has been waited for.
  void read() {
    const PortMemory& d = port_memory(ports_, "d");
    const std::size_t bytes = core::dtype_info(d.port->dtype).storage_bytes;
    got_.resize(distances_.size() * bytes);
    std::vector<DeviceRead> reads;
    for (std::size_t i = 0; i < distances_.size(); ++i) {
      reads.push_back({std::span(got_).subspan(i * bytes, bytes),
                       d.data + element_offset(*d.port, 0, static_cast<std::int64_t>(i), 0)});
    }
    memory_.download_at_sync(reads);
  }

  [[nodiscard]] Classification classify() const {
    const PortMemory& d = port_memory(ports_, "d");
    std::vector<double> sums(distances_.size());
    core::decode(got_, d.port->dtype, sums);
    const double whole = std::fabs(params_.alpha) * scale_beside_probes(params_) * kSurvives;
    const auto survives = [whole](double sum) { return std::fabs(sum - whole) < whole / 4; };
    const auto vanishes = [whole](double sum) { return std::fabs(sum) < whole / 4; };
    if (!std::ranges::all_of(sums, [&](double sum) { return survives(sum) || vanishes(sum); })) {
      return {.precision = PrecisionClass::unknown, .note = "sums of FP8 products are neither whole nor lost"};
    }
    const auto first = std::ranges::find_if(sums, survives);
    if (first == sums.begin()) {
      return {.precision = PrecisionClass::fp8_promoted, .note = ""};
    }
    if (first == sums.end()) {
      return {.precision = PrecisionClass::fp8_fast, .note = ""};
    }
    const auto at = static_cast<std::size_t>(first - sums.begin());
    return {.precision = PrecisionClass::fp8_rarely_promoted,
            .note = fmt::format("sums are promoted after more than {} and at most {} products",
                                kInterval * distances_[at - 1], kInterval * distances_[at])};
  }

 private:
  /// Scales of rows or blocks, those between them that nobody reads included.
  void set_all(std::string_view name, double scale) {
    const PortMemory& port = port_memory(ports_, name);
    const core::Dtype format = port.port->dtype;
    const std::vector<double> scales(port.port->extent_bytes() / core::dtype_info(format).storage_bytes, scale);
    std::vector<std::byte> stored(port.port->extent_bytes());
    core::encode(scales, format, stored);
    memory_.upload(port.data, stored);
  }

  /// Sets elements [begin, begin + values.size()) along k of row `line` of A, or of column `line` of B.
  void put(bool first, std::int64_t line, std::int64_t begin, const std::vector<double>& values) {
    const PortMemory& operand = port_memory(ports_, first ? "a" : "b");
    const bool along_rows = first != (first ? params_.trans_a : params_.trans_b);  // k is the index within a stored row
    std::vector<std::byte> codes(values.size());
    core::encode(values, operand.port->dtype, codes);
    const auto offset = [&](std::int64_t k) {
      return element_offset(*operand.port, 0, along_rows ? line : k, along_rows ? k : line);
    };
    if (along_rows) {
      memory_.upload(operand.data + offset(begin), codes);
      return;
    }
    for (std::size_t i = 0; i < codes.size(); ++i) {
      memory_.upload(operand.data + offset(begin + static_cast<std::int64_t>(i)), std::span(codes).subspan(i, 1));
    }
  }

  op::GemmParams params_;
  DeviceMemory& memory_;
  std::span<const PortMemory> ports_;
  std::vector<std::int64_t> distances_;
  std::vector<std::byte> got_;
};

}  // namespace

std::string sums_obstacle(const Call& call) {
  if (call.c->op != &op::gemm() || !core::is_fp8(call.c->mode->first)) {
    return "the probe is defined for gemm in FP8";
  }
  const auto p = op::from_params<op::GemmParams>(call.c->params);
  if (p.m == 0 || p.n == 0) {
    return "there is no product";
  }
  if (p.k <= 2 * kInterval) {
    return "sums of so few products are not promoted between two others";
  }
  const core::Dtype output = op::gemm_output_dtype(p, *call.c->mode);
  if (!(std::fabs(p.alpha) >= 0x1p-100 && std::fabs(p.alpha) <= 0x1p100)) {
    return "alpha moves the probes out of the normal range";
  }
  const double sum = core::round_to(std::fabs(p.alpha) * scale_beside_probes(p) * kSurvives, output);
  return std::isfinite(sum) && sum > 0 && sum < core::dtype_info(output).max_finite
             ? ""
             : "alpha moves the probes out of the output's range";
}

Classification classify_sums(const Algorithm& algorithm, const Call& call, DeviceMemory& memory,
                             std::span<const PortMemory> ports, std::byte* workspace, Launcher& launcher) {
  SumsProber prober(call, memory, ports);
  prober.fill();
  const PortMemory& d = port_memory(ports, "d");
  memory.fill(d.data, 0xFF, d.port->extent_bytes());  // NaN: what is not written is not taken for what is lost
  const ReadScope reads(memory);
  static_cast<void>(launcher.start(algorithm, "classification of sums", ports, workspace));
  prober.read();
  launcher.finish(memory);
  return prober.classify();
}

}  // namespace numcheck::kernels::harness
