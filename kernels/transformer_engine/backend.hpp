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

/// The library is looked for here and loaded with the first case: it is large. Where it is missing, too old or does
/// not load, every case is unsupported, with a sentence that says what would help. Of several libraries the one of the
/// case's backend is meant; a case of another one throws core::InternalError, because a process has room for one. The
/// device must outlive the backend.
[[nodiscard]] std::unique_ptr<Backend> make_backend(cuda_support::CudaDevice& device, const ExecutorOptions& options);

/// {"transformer_engine", "2.20.2 (path)"} of the library that would be used, if there is one. Of several libraries
/// each by its own name, and what is wrong with it in place of its version. Nothing is loaded.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> versions_in_use(const ExecutorOptions& options);

}  // namespace numcheck::kernels::transformer_engine
