// The outputs that a certificate looks at, as a small dense matrix.
#pragma once

#include <cstdint>
#include <vector>

#include "metric/compare.hpp"

namespace numcheck::tolerance {

/// Evenly spaced rows and columns of an output.
struct SubGrid {
  std::vector<std::int64_t> rows;  ///< of all matrices of the batch, numbered consecutively
  std::vector<std::int64_t> columns;
};
[[nodiscard]] SubGrid sub_grid(const op::Port& port);

struct CertificateData {
  op::Port port;                      ///< dense; one row if the comparison follows a sample
  std::vector<std::int64_t> indices;  ///< of the outputs, in the full output
  std::vector<double> expected;
  std::vector<float> magnitude;
  std::vector<float> deviation;
  std::vector<bool> outside;       ///< left to the implementation (op::OutputValues::outside); empty: none is
  std::vector<double> transposed;  ///< what would be there had rows been stored as columns; empty if unknown
};

/// Parallel: nearly every element costs cache misses.
[[nodiscard]] CertificateData gather(const metric::CompareInput& input);

}  // namespace numcheck::tolerance
