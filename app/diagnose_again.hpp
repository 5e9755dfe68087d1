// The command that diagnoses the same tensors again, with everything that was read from them said.
#pragma once

#include <string>

#include "diagnose/subject.hpp"
#include "given_tensors.hpp"

namespace numcheck::app {

/// Which tensors, besides TensorOptions.
struct DiagnosedFiles {
  std::string against, device, effort;
};

/// "te-numcheck diagnose gemm --mode fp32 --tensors step.safetensors --map a=x,b=w,d=y --param trans_b=true": the options as
/// given, then the mode and every parameter that is neither given, nor a size, nor what it is by default. To be pasted
/// into a shell.
[[nodiscard]] std::string diagnose_again(const TensorOptions& tensors, const DiagnosedFiles& files,
                                         const diagnose::Subject& subject);

}  // namespace numcheck::app
