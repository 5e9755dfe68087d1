// How a library may cut k into slices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/gemm_range_search.hpp"

namespace numcheck::reference {

/// The ranges of k that one slice adds.
using Slice = std::vector<Range>;

struct Partition {
  std::vector<Slice> slices;  ///< none is empty
  std::string text;           ///< "in steps of 1024"
};

/// Every plausible way of cutting k >= 1 into `count` slices, each once. Slices may be empty, as cuBLASLt declares
/// more than 100 even for k = 64, but not half of those that 128 products fill. With stages of 1, 2, 4, ... 256 products:
///
///   contiguous, of equal length rounded up to whole stages, so that the last one is shorter or missing
///   contiguous, of equally many whole stages, of which the first or the last slices have one more, or the last one all the
///   rest
///   stages dealt out in turn
///
/// Measured with cuBLASLt 13.1 on an H200: the first (BF16, FP32, TF32), and the last with stages of 8 (FP32, algorithm 55).
[[nodiscard]] std::vector<Partition> plausible_partitions(std::int64_t k, std::int64_t count);

}  // namespace numcheck::reference
