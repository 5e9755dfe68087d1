#include "kernels/cublas/library.hpp"

#include <fmt/format.h>

#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::cublas {

Cublas::Cublas(const std::string& lib_dir) : library_(cuda_support::cublas_library(), lib_dir) {
  cuda_support::check(create(&handle_), "cublasCreate_v2");
}

Cublas::~Cublas() {
  destroy(handle_);
}

std::string Cublas::version() const {
  int version = 0;  // major * 10000 + minor * 100 + patch
  cuda_support::check(get_version(handle_, &version), "cublasGetVersion_v2");
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace numcheck::kernels::cublas
