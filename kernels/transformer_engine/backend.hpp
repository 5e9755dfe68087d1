// The backend `transformer_engine`: the core library of an installed TransformerEngine, loaded at run time.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.hpp"
#include "kernels/cuda_support/cuda_device.hpp"
#include "kernels/executor_options.hpp"

namespace numcheck::kernels {

/// The library is looked for here and loaded with the first case: it is large. Where it is missing, too old or does
/// not load, every case is unsupported, with a sentence that says what would help. The device must outlive the backend.
[[nodiscard]] std::unique_ptr<Backend> make_transformer_engine_backend(CudaDevice& device,
                                                                       const ExecutorOptions& options);

/// "2.20.2 (path)" of the library that would be used; empty if there is none. Nothing is loaded.
[[nodiscard]] std::string transformer_engine_version_text(const ExecutorOptions& options);

}  // namespace numcheck::kernels
