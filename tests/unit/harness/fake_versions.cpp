// Stands in for cuBLASLt and cuDNN where only their versions are asked for. Crashes if NUMCHECK_FAKE_CRASH is set.
#include <cstddef>
#include <cstdlib>

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): the libraries' names
std::size_t cublasLtGetVersion() {
  if (std::getenv("NUMCHECK_FAKE_CRASH") != nullptr) {
    std::abort();
  }
  return 130203;
}
std::size_t cudnnGetVersion() {
  return 91902;
}
// NOLINTEND(readability-identifier-naming)
}
