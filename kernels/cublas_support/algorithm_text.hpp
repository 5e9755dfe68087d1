// cuBLASLt's algorithm configurations: the rounding that they declare, and all of it as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cublas_support/library.hpp"
#include "model/declared_rounding.hpp"

namespace numcheck::kernels::cublas_support {

/// "cublasLt algo 67, tile 128x128, split-k 4" and the configuration as pairs: id, tile, stages, split_k, reduction,
/// swizzle, custom, cluster, flags. Names of tiles, stages and clusters come from the header that this was built with;
/// those that only a newer library has appear as numbers.
struct AlgorithmText {
  std::string label;
  std::vector<std::pair<std::string, std::string>> details;
  model::DeclaredRounding rounding;
};

/// What decides which code of the library runs.
struct AlgorithmShape {
  std::string key;           ///< "67 128x128 64x4 split 2 reduction 2 custom 0 cluster 1x1x1"
  std::int64_t k_tile = 64;  ///< products of one stage; 64 if its name does not tell
  std::int64_t slices = 1;   ///< of k
};

/// The functions of the library that made an algorithm, which alone can read it.
struct AlgorithmReader {
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) config_get = nullptr;
  decltype(&::cublasLtMatmulAlgoCapGetAttribute) capability_get = nullptr;
};

[[nodiscard]] AlgorithmReader reader_of(const CublasLt& lt);

[[nodiscard]] AlgorithmShape shape_of(const AlgorithmReader& reader, const cublasLtMatmulAlgo_t& algorithm);

[[nodiscard]] AlgorithmText describe_algorithm(const AlgorithmReader& reader, const cublasLtMatmulAlgo_t& algorithm);

/// Of several products: "cublasLt algo 23, tile 32x32 (2 of 3 products); cublasLt algo 24, ..."; empty without any.
[[nodiscard]] std::string labels_of(std::span<const AlgorithmText> products);

}  // namespace numcheck::kernels::cublas_support
