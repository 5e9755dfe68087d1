// A device that fails permanently at a chosen call, as after a CUDA fault, but without a GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "worker/execution.hpp"

namespace numcheck::containment {

/// Which call fails, and where calls are counted.
struct Fault {
  int call = 0;           ///< from 1, of the calls for the case with that m: 0 means none
  std::int64_t m = 0;     ///< rows of the product whose case faults
  int between_cases = 0;  ///< the device fails by itself after this many cases, once all of them are judged
};

/// The executor that a CUDA device gets, on top of simulated products as backend `cublaslt`. Calls to the device
/// (allocate, fill, upload, launch, record, synchronize, download, release, ...) are counted; from the chosen one on
/// each of them fails, as after an illegal address. The details of results include the process ID.
[[nodiscard]] std::unique_ptr<worker::Executor> make_faulty_executor(const Fault& fault);

}  // namespace numcheck::containment
