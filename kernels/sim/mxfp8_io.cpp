#include "kernels/sim/mxfp8_io.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "kernels/sim/perturbation.hpp"
#include "kernels/sim/tensor_io.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr int kBias = 127;
constexpr int kMaxExponent = 254;

/// One layout of the output, written block by block.
class Layout {
 public:
  Layout(const PortMemory& codes, const PortMemory& scales, std::string_view fault)
      : codes_(codes), scales_(scales), fault_(fault) {}

  /// Returns the values of the stored codes.
  [[nodiscard]] std::vector<float> write(const std::vector<float>& results) const {
    const op::Port& grid = *scales_.port;
    std::vector<float> values(results.size());
    int before = -1;
    for (std::int64_t number = 0; number < grid.elements(); ++number) {
      const std::vector<std::size_t> block = block_at(number / grid.cols, number % grid.cols);
      const int exponent = exponent_of(results, block);
      const bool borrows = fault_ == "neighbour_scale" && before >= 0;
      for (const std::size_t at : block) {
        values[at] = store(at, results[at], borrows ? before : exponent);
      }
      before = exponent;
      const bool off = fault_ == "block_scale_off" && number == grid.elements() / 2;
      const int stored = off && exponent < kMaxExponent ? exponent + 1 : exponent;
      scales_.data[grid.offset_bytes + number] = static_cast<std::byte>(stored);
    }
    return values;
  }

 private:
  /// Elements of the block in row `line`, column `at` of the scales.
  [[nodiscard]] std::vector<std::size_t> block_at(std::int64_t line, std::int64_t at) const {
    const op::Port& port = *codes_.port;
    std::vector<std::size_t> elements;
    for (std::int64_t r = line * port.block_rows; r < std::min((line + 1) * port.block_rows, port.rows); ++r) {
      for (std::int64_t c = at * port.block_cols; c < std::min((at + 1) * port.block_cols, port.cols); ++c) {
        elements.push_back(static_cast<std::size_t>(r * port.cols + c));
      }
    }
    return elements;
  }

  [[nodiscard]] int exponent_of(const std::vector<float>& results, const std::vector<std::size_t>& block) const {
    float amax = 0;
    for (const std::size_t at : block) {
      amax = std::fmax(amax, std::fabs(results[at]));
    }
    const auto largest = static_cast<float>(core::dtype_info(codes_.port->dtype).max_finite);
    if (fault_ == "block_scale_floor" && amax > 0 && std::isfinite(amax)) {
      return std::clamp(std::ilogb(amax) - std::ilogb(largest) + kBias, 0, kMaxExponent);
    }
    return static_cast<int>(core::encode(static_cast<double>(amax * (1.0F / largest)), core::Dtype::e8m0,
                                         core::Overflow::saturate, core::Rounding::toward_positive));
  }

  [[nodiscard]] float store(std::size_t at, float result, int exponent) const {
    const op::Port& port = *codes_.port;
    const float scaled = result * std::ldexp(1.0F, kBias - exponent);
    const auto rounding = fault_ == "truncated_output" ? core::Rounding::toward_zero : core::Rounding::nearest_even;
    const std::uint64_t code =
        core::encode(static_cast<double>(scaled), port.dtype, core::Overflow::saturate, rounding);
    codes_.data[static_cast<std::size_t>(port.offset_bytes) + at] = static_cast<std::byte>(code);
    return static_cast<float>(core::decode(code, port.dtype)) * std::ldexp(1.0F, exponent - kBias);
  }

  const PortMemory& codes_;
  const PortMemory& scales_;
  std::string_view fault_;
};

/// A result with the faults that any output can have, before it is rounded.
float with_output_fault(float result, std::string_view fault) {
  if (fault == "nan_dropped" && std::isnan(result)) {
    return 0;
  }
  constexpr float kWrongScale = 1.01F;
  return fault == "output_scale_1_01" ? result * kWrongScale : result;
}

/// Changes the results by one of perturbations(), if the fault is that and the port the one that it changes.
void perturb(std::string_view fault, const op::Port& port, std::span<const PortMemory> ports,
             std::vector<float>& results) {
  const auto perturbation = perturbation_of(fault, port, ports);
  if (!perturbation) {
    return;
  }
  const auto columns = static_cast<std::size_t>(port.cols);
  std::vector<double> line(columns);
  for (std::size_t first = 0; first < results.size(); first += columns) {
    std::copy_n(results.begin() + static_cast<std::ptrdiff_t>(first), columns, line.begin());
    perturbation->apply(static_cast<std::int64_t>(first / columns), line);
    std::ranges::transform(line, results.begin() + static_cast<std::ptrdiff_t>(first),
                           [](double value) { return static_cast<float>(value); });
  }
}

const op::Port* scaled_port(const Call& call) {
  const auto found = std::ranges::find_if(call.ports, [](const op::Port& port) { return !port.scaled_by.empty(); });
  return found == call.ports.end() ? nullptr : &*found;
}

}  // namespace

bool has_mxfp8(std::span<const PortMemory> ports, const op::Mxfp8Names& names) noexcept {
  return find_port(ports, names.rowwise_scales) != nullptr || find_port(ports, names.columnwise_scales) != nullptr;
}

void write_mxfp8(std::span<const PortMemory> ports, const op::Mxfp8Names& names, std::vector<float> results,
                 core::Dtype first, std::string_view fault) {
  const PortMemory* rowwise = find_port(ports, names.rowwise_scales);
  const PortMemory* columnwise = find_port(ports, names.columnwise_scales);
  const op::Port& port = *find_port(ports, rowwise != nullptr ? names.rowwise : names.columnwise)->port;
  perturb(fault, port, ports, results);
  const bool rounds = fault != "first_rounding_missing";
  std::ranges::transform(results, results.begin(), [&](float result) {
    const float value = with_output_fault(result, fault);
    return rounds ? static_cast<float>(core::round_to(static_cast<double>(value), first)) : value;
  });
  if (fault == "last_row_stale") {
    std::fill(results.end() - static_cast<std::ptrdiff_t>(port.cols), results.end(), 0.0F);
  }
  if (rowwise != nullptr) {
    std::vector<float> values = Layout(*find_port(ports, names.rowwise), *rowwise, fault).write(results);
    if (fault == "columnwise_from_rowwise") {
      results = std::move(values);
    }
  }
  if (columnwise != nullptr) {
    (void)Layout(*find_port(ports, names.columnwise), *columnwise, fault).write(results);
  }
}

std::string needs_block_scales(const Call& call) {
  return scaled_port(call) == nullptr ? "the output has no block scales" : "";
}

std::string needs_two_blocks(const Call& call) {
  const op::Port* codes = scaled_port(call);
  if (codes == nullptr) {
    return needs_block_scales(call);
  }
  return op::port_named(call.ports, codes->scaled_by).elements() < 2 ? "the output has only one block" : "";
}

std::string needs_first_rounding(const Call& call) {
  if (scaled_port(call) == nullptr) {
    return needs_block_scales(call);
  }
  return call.c->mode->first == core::Dtype::fp32 ? "FP32 results are not rounded before they are quantised" : "";
}

std::string needs_both_layouts(const Call& call) {
  const auto scaled = std::ranges::count_if(call.ports, [](const op::Port& port) { return !port.scaled_by.empty(); });
  return scaled < 2 ? "no output has both layouts" : "";
}

}  // namespace numcheck::kernels::sim
