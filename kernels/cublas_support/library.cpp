#include "kernels/cublas_support/library.hpp"

#include <fmt/format.h>

#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cublas_support {

CublasLt::CublasLt(const std::string& lib_dir) : library_(cuda_support::cublaslt_library(), lib_dir) {
  cuda_support::check(create(&handle_), "cublasLtCreate");
}

CublasLt::~CublasLt() {
  destroy(handle_);
}

std::string CublasLt::version() const {
  // major * 10000 + minor * 100 + patch since 11.x.
  const std::size_t version = get_version();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace numcheck::kernels::cublas_support
