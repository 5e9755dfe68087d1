// Instruction-set dispatch for our own hot loops (generator, codecs, metrics, simulator).
// Each hot source is compiled once per instruction set into a namespace of its own and chosen once at start.
#pragma once

#include <optional>
#include <string_view>

namespace numcheck::core {

enum class Isa { baseline, avx2, avx512 };

/// The best set that this processor supports, or the one that TE_NUMCHECK_ISA names if it is supported. Fixed at
/// first use; all sets give the same bits.
[[nodiscard]] Isa active_isa() noexcept;

/// The active set's `name`, a variable or function that each set has in its namespace (baseline::, avx2::, avx512::)
/// relative to where this stands. On other processors than x86-64 there is baseline alone.
#if defined(__x86_64__)
#define NUMCHECK_ACTIVE_ISA(name) (numcheck::core::choose(baseline::name, avx2::name, avx512::name))
#else
#define NUMCHECK_ACTIVE_ISA(name) (baseline::name)
#endif

template <class T>
[[nodiscard]] T& choose(T& baseline, T& avx2, T& avx512) noexcept {
  const Isa isa = active_isa();
  return isa == Isa::avx512 ? avx512 : isa == Isa::avx2 ? avx2 : baseline;
}

/// For tests: use that set from now on (ignored if unsupported). Returns what is active.
Isa force_isa(Isa isa) noexcept;

[[nodiscard]] bool is_supported(Isa isa) noexcept;
[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;

}  // namespace numcheck::core
