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

/// For tests: uses that set from now on (ignored if unsupported). Returns the active one.
Isa force_isa(Isa isa) noexcept;

[[nodiscard]] bool is_supported(Isa isa) noexcept;
[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;

}  // namespace numcheck::core
