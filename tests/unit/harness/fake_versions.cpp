// Stands in for cuBLASLt and cuDNN where only their versions are asked for.
#include <cstddef>

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the libraries' names
std::size_t cublasLtGetVersion() {
  return 130203;
}
std::size_t cudnnGetVersion() {
  return 91902;
}
// NOLINTEND(readability-identifier-naming)
}
