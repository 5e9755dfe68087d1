// Instruction-set dispatch for our own hot loops (generator, codecs, metrics, simulator).
// Each hot source is compiled once per instruction set, into its own namespace; one is chosen at first use.
#pragma once

#include <optional>
#include <string_view>

namespace numcheck::core {

enum class Isa { baseline, avx2, avx512 };

/// The best set that this processor supports, or the one that TE_NUMCHECK_ISA names if it is supported. Fixed at
/// first use; all sets produce the same bits.
[[nodiscard]] Isa active_isa() noexcept;

/// The active set's `name`: a variable or function that every set declares in its own namespace (baseline::, avx2::,
/// avx512::) inside the namespace of the caller. Processors other than x86-64 have the baseline only.
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

/// For tests: uses that set from now on (ignored if unsupported). Returns the active one.
Isa force_isa(Isa isa) noexcept;

[[nodiscard]] bool is_supported(Isa isa) noexcept;
[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;

}  // namespace numcheck::core
