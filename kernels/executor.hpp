// The executor of a device: the backends that it has, behind run::Executor.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/backend.hpp"
#include "machine/device.hpp"
#include "run/execution.hpp"

namespace numcheck::kernels {

struct ExecutorOptions {
  std::string lib_dir;  ///< where NVIDIA's libraries are searched; empty: TE_NUMCHECK_LIB_DIR, then the usual places
};

/// An executor that dispatches by the case's backend: `cublaslt` and `cuda` on a CUDA device, `sim` on every device
/// (modelling the same architecture), `auto` meaning cublaslt on a CUDA device and sim on a simulated one.
/// A backend that the device does not have makes the case `unsupported`; a library that is missing throws
/// core::EnvironmentError when the first case needs it.
///
/// Device::Kind::automatic is cuda:0 where a driver works, and sim:sm_90 where there is no NVIDIA driver at all.
/// Throws core::EnvironmentError if the device does not exist or its driver does not work.
[[nodiscard]] std::unique_ptr<run::Executor> make_executor(const machine::DeviceChoice& choice,
                                                           const ExecutorOptions& options = {});

/// Names of all backends that an executor may have, also those that this build lacks.
[[nodiscard]] std::span<const std::string_view> backend_names() noexcept;

}  // namespace numcheck::kernels
