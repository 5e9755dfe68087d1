#include "kernels/harness/sums_probe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/harness/port_image.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::harness {
namespace {

using model::PrecisionClass;

constexpr double kLargeOfA = 128, kLargeOfB = 64, kLarge = kLargeOfA * kLargeOfB;
constexpr double kSmallOfA = 0.5, kSmallOfB = 1, kSmall = kSmallOfA * kSmallOfB;
constexpr double kHalfOfB = 8;  ///< of the product that is half an ulp
constexpr double kSurvives = static_cast<double>(kPromotionInterval) * kSmall;

/// How many intervals lie between the first products and those of each row.
constexpr std::array<std::int64_t, 8> kDistances = {1, 2, 3, 4, 8, 16, 32, 64};

bool is_long(const op::GemmParams& p) {
  return p.k > 2 * kPromotionInterval;
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::frexp(value, &exponent) == 0.5;
}

/// What the product of the operands' scales is during the probe: with gelu, a power of two that brings sums to where gelu is
/// straight, 32 to 64. With short sums, alpha times it is a power of two, or, where alpha is none, slightly less than one, so that
/// a tie is rounded down whatever the order of the factors.
double scale_beside_probes(const op::GemmParams& p) {
  constexpr int kStraight = 5;
  constexpr double kLess = 1 - 0x1p-18;  // by a 16th of a small product
  const bool straight = p.epilogue == "gelu";
  if (is_long(p)) {
    return straight ? std::ldexp(1.0, kStraight - std::ilogb(kSurvives) - std::ilogb(p.alpha)) : 1;
  }
  const double alpha = std::fabs(p.alpha);
  const double product = straight ? std::ldexp(1.0, kStraight - std::ilogb(kLarge)) : 1;
  return (is_power_of_two(alpha) ? 1 : kLess) * product / alpha;
}

/// The scale of an FP8 output: sums of 2^13 are beyond E4M3.
double scale_of_output(const op::GemmParams& p, core::Dtype output) {
  return core::is_fp8(output) && !is_long(p) && p.epilogue != "gelu" ? 0x1p-5 : 1;
}

/// Half an ulp of the output, of the large product; 0 if the small ones need none to be seen.
double half_ulp(core::Dtype output) {
  return output == core::Dtype::fp32 ? 0 : kLarge * core::dtype_info(output).unit_roundoff;
}

/// What a short sum is as the output holds it, with all products or without the small ones.
double short_sum(const op::GemmParams& p, core::Dtype output, bool whole) {
  const double small = whole ? kSmall * static_cast<double>(p.k - kPromotionInterval) : 0;
  const double factor = std::fabs(p.alpha) * scale_beside_probes(p) * scale_of_output(p, output);
  return core::round_to(factor * (kLarge + half_ulp(output) + small), output);
}

std::string short_obstacle(const op::GemmParams& p, core::Dtype output) {
  if (p.k <= kPromotionInterval) {
    return "sums of so few products are not promoted before they end";
  }
  if (p.scaling == "mxfp8" && !is_power_of_two(std::fabs(p.alpha))) {
    return "scales that are powers of two and an alpha that is none make no tie";
  }
  const double lost = short_sum(p, output, false), whole = short_sum(p, output, true);
  const bool is_held = lost > 0 && whole < core::dtype_info(output).max_finite && lost < whole;
  return is_held ? "" : "the output's format has no room for the probes";
}

}  // namespace

std::string sums_probe_obstacle(const op::GemmParams& product, const op::Mode& mode) {
  if (!core::is_fp8(mode.first)) {
    return "the probe is defined for FP8";
  }
  if (product.m == 0 || product.n == 0) {
    return "there is no product";
  }
  if (!(std::fabs(product.alpha) >= 0x1p-100 && std::fabs(product.alpha) <= 0x1p100)) {
    return "alpha moves the probes out of the normal range";
  }
  const core::Dtype output = op::gemm_output_dtype(product, mode);
  if (!is_long(product)) {
    return short_obstacle(product, output);
  }
  const double sum = core::round_to(std::fabs(product.alpha) * scale_beside_probes(product) * kSurvives, output);
  return std::isfinite(sum) && sum > 0 && sum < core::dtype_info(output).max_finite
             ? ""
             : "alpha moves the probes out of the output's range";
}

SumsProbe::SumsProbe(const op::Product& product, DeviceMemory& memory, std::span<const PortMemory> ports)
    : product_(product), memory_(memory), ports_(ports), d_(port_memory(ports, product.d)) {
  const std::int64_t last = (product_.params.k - 1) / kPromotionInterval;  // that of the last product
  for (std::size_t i = 0; i < kDistances.size() && kDistances[i] < last && std::cmp_less(i, product_.params.m); ++i) {
    distances_.push_back(kDistances[i]);
  }
}

void SumsProbe::fill() {
  set_scales();
  is_long(product_.params) ? fill_long() : fill_short();
}

void SumsProbe::set_scales() {
  const double beside = scale_beside_probes(product_.params);
  const double of_output = scale_of_output(product_.params, d_.port->dtype);
  const std::string_view scaled_a = port_memory(ports_, product_.a).port->scaled_by;
  const std::string_view scaled_b = port_memory(ports_, product_.b).port->scaled_by;
  for (const PortMemory& port : ports_) {
    const std::string_view of = port.port->role == op::Role::scale ? port.port->of : std::string_view();
    if (of == product_.a || port.port->name == scaled_a) {
      set_all(port, beside);
    } else if (of == product_.b || port.port->name == scaled_b) {
      set_all(port, 1);
    } else if (of == product_.d) {
      set_all(port, of_output);
    }
  }
}

void SumsProbe::fill_long() {
  const std::int64_t k = product_.params.k;
  const double sign = product_.params.alpha < 0 ? -1 : 1;  // relu passes only positive sums
  put(false, 0, 0, {kLargeOfB});
  put(false, 0, k - 1, {kLargeOfB});
  for (std::size_t i = 0; i < distances_.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const std::int64_t begin = distances_[i] * kPromotionInterval;
    put(true, row, 0, {sign * kLargeOfA});
    put(true, row, k - 1, {-sign * kLargeOfA});
    put(true, row, begin, std::vector<double>(kPromotionInterval, sign * kSmallOfA));
    put(false, 0, begin, std::vector<double>(kPromotionInterval, kSmallOfB));
  }
}

void SumsProbe::fill_short() {
  const auto small = static_cast<std::size_t>(product_.params.k - kPromotionInterval);
  const double sign = product_.params.alpha < 0 ? -1 : 1;
  const double half = half_ulp(d_.port->dtype);
  put(true, 0, 0, {sign * kLargeOfA, sign * half / kHalfOfB});
  put(false, 0, 0, {kLargeOfB, kHalfOfB});
  put(true, 0, kPromotionInterval, std::vector<double>(small, sign * kSmallOfA));
  put(false, 0, kPromotionInterval, std::vector<double>(small, kSmallOfB));
}

void SumsProbe::read() {
  const std::size_t bytes = core::dtype_info(d_.port->dtype).storage_bytes;
  const std::size_t rows = is_long(product_.params) ? distances_.size() : 1;
  got_.resize(rows * bytes);
  std::vector<DeviceRead> reads;
  for (std::size_t i = 0; i < rows; ++i) {
    reads.push_back({std::span(got_).subspan(i * bytes, bytes),
                     d_.data + element_offset(*d_.port, 0, static_cast<std::int64_t>(i), 0)});
  }
  memory_.download_at_sync(reads);
}

Classification SumsProbe::classify() const {
  std::vector<double> sums(got_.size() / core::dtype_info(d_.port->dtype).storage_bytes);
  core::decode(got_, d_.port->dtype, sums);
  return is_long(product_.params) ? classify_long(sums) : classify_short(sums.front());
}

Classification SumsProbe::classify_long(std::span<const double> sums) const {
  const double whole = std::fabs(product_.params.alpha) * scale_beside_probes(product_.params) * kSurvives;
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
                              kPromotionInterval * distances_[at - 1], kPromotionInterval * distances_[at])};
}

Classification SumsProbe::classify_short(double sum) const {
  constexpr double kClose = 0x1p-20;  // alpha times a sum is rounded to FP32
  const core::Dtype output = d_.port->dtype;
  const auto is = [&](bool whole) {
    const double wanted = short_sum(product_.params, output, whole);
    return std::fabs(std::fabs(sum) - wanted) <= kClose * wanted;
  };
  if (is(true)) {
    return {.precision = PrecisionClass::fp8_promoted, .note = ""};
  }
  if (is(false)) {
    return {.precision = PrecisionClass::fp8_fast, .note = ""};
  }
  return {.precision = PrecisionClass::unknown,
          .note = "a sum of FP8 products is neither whole nor without the small ones"};
}

void SumsProbe::set_all(const PortMemory& port, double scale) {
  const core::Dtype format = port.port->dtype;
  const std::size_t bytes = port.port->elements() == 1
                                ? static_cast<std::size_t>(core::dtype_info(format).storage_bytes)
                                : port.port->extent_bytes();
  const std::vector<double> scales(bytes / core::dtype_info(format).storage_bytes, scale);
  std::vector<std::byte> stored(bytes);
  core::encode(scales, format, stored);
  memory_.upload(port.data + (port.port->elements() == 1 ? port.port->offset_bytes : 0), stored);
}

void SumsProbe::put(bool first, std::int64_t line, std::int64_t begin, const std::vector<double>& values) {
  const PortMemory& operand = port_memory(ports_, first ? product_.a : product_.b);
  const op::GemmParams& p = product_.params;
  const bool along_rows = first != (first ? p.trans_a : p.trans_b);  // k is the index within a stored row
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

}  // namespace numcheck::kernels::harness
