// Opens a device with the backends that this build and this machine have, behind worker::Executor.
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
/// A backend that the device does not have makes the case `unsupported`; a missing library throws
/// core::EnvironmentError when the first case needs it.
///
/// DeviceChoice::Kind::automatic is cuda:0 if a driver works, and sim:sm_90 if there is no NVIDIA driver at all.
/// Throws core::EnvironmentError if the device does not exist or its driver does not work.
[[nodiscard]] std::unique_ptr<worker::Executor> make_executor(const machine::DeviceChoice& choice,
                                                              const ExecutorOptions& options = {});

/// The same for a device that is already open.
[[nodiscard]] std::unique_ptr<worker::Executor> make_executor(std::unique_ptr<CudaBackends> backends,
                                                              Bindings bindings);

}  // namespace numcheck::kernels::loader
