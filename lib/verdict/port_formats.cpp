#include "verdict/port_formats.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "prepare/group.hpp"
#include "verdict/sampled_elements.hpp"

namespace numcheck::verdict {
namespace {

using core::Dtype;

/// In this order: the first one that holds everything.
constexpr std::array kCandidates = {Dtype::fp8_e5m2, Dtype::fp8_e4m3, Dtype::bf16,
                                    Dtype::fp16,     Dtype::tf32,     Dtype::fp32};

/// What numbers need of a format.
struct Needs {
  int bits = 0;                                  ///< of the significand, from its first one to its last one
  int lowest = std::numeric_limits<int>::max();  ///< exponent of the lowest bit
  double largest = 0;

  void add(const Needs& other) {
    bits = std::max(bits, other.bits);
    lowest = std::min(lowest, other.lowest);
    largest = std::max(largest, other.largest);
  }
  [[nodiscard]] bool met_by(Dtype dtype) const {
    const core::DtypeInfo& format = core::dtype_info(dtype);
    return bits <= format.fraction_bits + 1 && lowest >= format.emin - format.fraction_bits &&
           largest <= format.max_finite;
  }
};

/// Of a number that is finite and not 0.
Needs needs_of(double value) {
  int exponent = 0;
  constexpr int kBits = std::numeric_limits<double>::digits;
  const double significand = std::fabs(std::frexp(value, &exponent));
  const auto whole = static_cast<std::uint64_t>(std::ldexp(significand, kBits));
  const int zeros = std::countr_zero(whole);
  return {kBits - zeros, exponent - kBits + zeros, std::fabs(value)};
}

bool has_floating_point_numbers(const op::Port& port) {
  const bool is_number = !core::is_integer(port.dtype) && port.dtype != Dtype::e8m0 && port.dtype != Dtype::fp4_e2m1;
  return is_number && (port.role == op::Role::input || port.role == op::Role::output);
}

PortFormat format_of(const op::Port& port, std::span<const std::byte> bytes) {
  PortFormat format{.port = std::string(port.name), .declared = port.dtype};
  Needs all;
  std::uint64_t below = 0;
  for_sampled_elements(port, bytes, [&](double value, std::int64_t) {
    if (value == 0 || !std::isfinite(value)) {
      return;
    }
    const Needs one = needs_of(value);
    all.add(one);
    below += one.met_by(Dtype::bf16) ? 0 : 1;
    ++format.seen;
  });
  if (format.seen > 0) {
    const auto* const fits = std::ranges::find_if(
        kCandidates, [&](Dtype candidate) { return candidate == port.dtype || all.met_by(candidate); });
    format.observed = fits == kCandidates.end() ? port.dtype : *fits;
    format.below_bf16 = static_cast<double>(below) / static_cast<double>(format.seen);
  }
  return format;
}

}  // namespace

std::vector<PortFormat> port_formats(const prepare::PreparedCase& prepared, std::span<const worker::HostPort> host) {
  std::vector<PortFormat> formats;
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    if (has_floating_point_numbers(prepared.ports[i])) {
      formats.push_back(format_of(prepared.ports[i], host[i].bytes));
    }
  }
  return formats;
}

}  // namespace numcheck::verdict
