// Runs one case on a backend under guards: upload, poison, run twice, check, download, digest.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/backend.hpp"
#include "run/execution.hpp"

namespace numcheck::kernels {

/// Poison pattern of output buffers, padding and guards: a NaN in every format.
inline constexpr std::uint8_t kPoisonByte = 0xFF;

/// For every algorithm of the case: upload the inputs, poison outputs, padding, workspace and the guard bytes around
/// every buffer, launch, check guards, hash inputs, download, hash outputs, and again (options.repeats, the second time
/// with another workspace pattern), comparing bits. Then calls the sink with the outputs in the host buffers.
[[nodiscard]] run::Outcome run_case(Backend& backend, const plan::Case& c, std::span<const run::HostPort> ports,
                                    const run::ExecuteOptions& options, const run::RunSink& sink);

}  // namespace numcheck::kernels
