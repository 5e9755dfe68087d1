#include "reference/amax_course.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/error.hpp"

namespace numcheck::reference {
namespace {

constexpr int kSpikeExponent = 10;
constexpr int kRestartExponent = -10;  // of gradients, say: a scale of 1 loses most of them
constexpr int kDriftExponents = 12;
constexpr int kVanishExponents = 168;  // 2^-149 is the smallest FP32 number, and draws may be above 1

double fp32(double value) noexcept {
  return static_cast<double>(static_cast<float>(value));
}

/// Bits that depend on all bits of the argument (the finaliser of MurmurHash3, 64 bits).
std::uint64_t mixed(std::uint64_t bits) noexcept {
  constexpr std::uint64_t kFirst = 0xFF51AFD7ED558CCDU, kSecond = 0xC4CEB9FE1A85EC53U;
  bits = (bits ^ bits >> 33U) * kFirst;
  bits = (bits ^ bits >> 33U) * kSecond;
  return bits ^ bits >> 33U;
}

/// A special amax, or the magnitude itself.
double special_or(double magnitude, std::uint64_t bits) noexcept {
  constexpr double kTiny = 0x1p-122;                            // 448 and 57344 over it are infinite
  const auto part = static_cast<double>(bits >> 40U) / 0x1p24;  // [0, 1)
  switch (bits % 16) {
    case 0:
    case 1:
    case 2:
    case 3:
      return 0;
    case 4:
      return fp32(0x1p-149 + part * (0x1p-126 - 0x1p-148));
    case 5:
      return std::numeric_limits<double>::infinity();
    case 6:
      return std::numeric_limits<double>::quiet_NaN();
    case 7:
      return static_cast<double>(std::numeric_limits<float>::max());
    case 8:
      return fp32(kTiny * (1 + part));
    default:
      return magnitude;
  }
}

}  // namespace

AmaxCourse::Kind AmaxCourse::kind_of(const op::Fp8RecipeParams& p) {
  constexpr std::array<std::pair<std::string_view, Kind>, 8> kKinds = {{
      {"steady", Kind::steady},
      {"drifting", Kind::drifting},
      {"spiking", Kind::spiking},
      {"vanishing", Kind::vanishing},
      {"special", Kind::special},
      {"restart_with_state", Kind::restart_with_state},
      {"restart_without_state", Kind::restart_without_state},
      {"calibration", Kind::calibration},
  }};
  for (const auto& [name, kind] : kKinds) {
    if (name == p.course) {
      return kind;
    }
  }
  throw core::InternalError("fp8_recipe has no course " + p.course);
}

AmaxCourse::AmaxCourse(const op::Fp8RecipeParams& p) : kind_(kind_of(p)), steps_(p.steps) {}

double AmaxCourse::level(std::int64_t step) const noexcept {
  const std::int64_t last = std::max<std::int64_t>(steps_ - 1, 1);
  const auto fallen = [step, last](int exponents) {
    return std::ldexp(1.0, -static_cast<int>(exponents * step / last));
  };
  switch (kind_) {
    case Kind::drifting:
      return fallen(kDriftExponents);
    case Kind::vanishing:
      return fallen(kVanishExponents);
    case Kind::spiking:
      return step == steps_ / 4 ? std::ldexp(1.0, kSpikeExponent) : 1.0;
    case Kind::restart_with_state:
    case Kind::restart_without_state:
    case Kind::calibration:
      return std::ldexp(1.0, kRestartExponent);
    case Kind::steady:
    case Kind::special:
      break;
  }
  return 1;
}

double AmaxCourse::amax(double draw, std::int64_t step, std::int64_t element) const noexcept {
  const double magnitude = fp32(std::fabs(draw) * level(step));
  const auto number = static_cast<std::uint64_t>(element);
  return kind_ == Kind::special ? special_or(magnitude, mixed(std::bit_cast<std::uint64_t>(draw) + mixed(number)))
                                : magnitude;
}

double AmaxCourse::remembered(double draw, std::int64_t slot, std::int64_t tensor) const noexcept {
  const bool is_known =
      (kind_ == Kind::restart_with_state && slot > 0) || (kind_ == Kind::calibration && slot == 0 && tensor % 2 == 0);
  return is_known ? fp32(std::fabs(draw) * std::ldexp(1.0, kRestartExponent)) : 0;
}

}  // namespace numcheck::reference
