#include "core/isa.hpp"

#include <array>
#include <atomic>
#include <cstdlib>

namespace numcheck::core {
namespace {

constexpr std::array kSets = {Isa::baseline, Isa::avx2, Isa::avx512};

/// The features with which numcheck_isa_sources (scripts/cmake/NumcheckTargets.cmake) compiles each set.
bool processor_has(Isa isa) noexcept {
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("f16c") != 0 && __builtin_cpu_supports("bmi") != 0 &&
                    __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("lzcnt") != 0;
  switch (isa) {
    case Isa::baseline:
      return true;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx2 && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  }
  return false;
#else
  return isa == Isa::baseline;
#endif
}

Isa choose() noexcept {
  Isa best = Isa::baseline;
  const char* wanted = std::getenv("TE_NUMCHECK_ISA");
  for (const Isa isa : kSets) {
    if (!processor_has(isa)) {
      continue;
    }
    if (wanted != nullptr && isa_name(isa) == wanted) {
      return isa;
    }
    best = isa;
  }
  return best;
}

std::atomic<Isa>& active() noexcept {
  static std::atomic<Isa> isa = choose();
  return isa;
}

}  // namespace

Isa active_isa() noexcept {
  return active().load(std::memory_order_relaxed);
}

Isa force_isa(Isa isa) noexcept {
  if (is_supported(isa)) {
    active().store(isa, std::memory_order_relaxed);
  }
  return active_isa();
}

bool is_supported(Isa isa) noexcept {
  return processor_has(isa);
}

std::string_view isa_name(Isa isa) noexcept {
  constexpr std::array<std::string_view, 3> kNames = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<std::size_t>(isa)];
}

}  // namespace numcheck::core
