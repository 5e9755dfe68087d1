// The executor of a device: the backends that it has, behind worker::Executor.
#pragma once

#include <memory>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/executor_options.hpp"
#include "kernels/loader/backend_set.hpp"
#include "machine/device.hpp"
#include "worker/execution.hpp"

namespace numcheck::kernels::loader {

/// An executor that dispatches by the case's backend: `sim` on every device (modelling the same architecture), all
/// others on a CUDA device; `auto` means the first backend that the bindings list for the op, and sim on a simulated
/// device.
/// A backend that the device does not have makes the case `unsupported`; a library that is missing throws
/// core::EnvironmentError when the first case needs it.
///
/// Device::Kind::automatic is cuda:0 where a driver works, and sim:sm_90 where there is no NVIDIA driver at all.
/// Throws core::EnvironmentError if the device does not exist or its driver does not work.
[[nodiscard]] std::unique_ptr<worker::Executor> make_executor(const machine::DeviceChoice& choice,
                                                              const ExecutorOptions& options = {});

/// The executor of a device that is open already: what the one above makes of it.
[[nodiscard]] std::unique_ptr<worker::Executor> make_executor(std::unique_ptr<CudaBackends> backends,
                                                              Bindings bindings);

}  // namespace numcheck::kernels::loader
