// The backend `transformer_engine`: the core library of an installed TransformerEngine, loaded at run time.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/executor_options.hpp"
#include "kernels/cuda_support/cuda_device.hpp"

namespace numcheck::kernels::transformer_engine {

/// The library is found and loaded with the first case: it is large. If it is missing, too old or does not load, every
/// case is unsupported, with a sentence that says what would help. Of several libraries, the one that the case's
/// backend names is used; a case for another one throws core::InternalError, because a process has room for only one.
/// The device must outlive the backend.
[[nodiscard]] std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options);

/// {"transformer_engine", "2.20.2 (path)"} for the library that would be used, if there is one. With several libraries,
/// each under its own name; one that cannot be used has the problem in place of its version. Nothing is loaded.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> versions_in_use(const ExecutorOptions& options);

}  // namespace numcheck::kernels::transformer_engine
