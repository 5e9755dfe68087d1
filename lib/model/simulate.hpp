// A whole GEMM as modelled hardware computes it, bit for bit under its schedule.
#pragma once

#include <cstdint>

#include "model/epilogue.hpp"
#include "model/operand_image.hpp"
#include "model/product.hpp"
#include "model/schedule.hpp"

namespace numcheck::model {

/// D = epilogue(A B) for one matrix of a batch. What a library does (and what a faulty one might do) is data here, so
/// that the simulator, planted faults and the search for causes share one implementation.
struct GemmTask {
  MatrixView a;  ///< m x k as multiplied: a transposed operand has exchanged strides
  MatrixView b;  ///< k x n
  OperandConversion conversion;
  Schedule schedule;
  /// Operands are split into two TF32 parts and a_high b_low, a_low b_high, a_high b_high of every step are accumulated
  /// in that order in the same chain ("3xTF32" inside the tensor core).
  bool three_tf32 = false;
  /// So many elements at the end of every row of A but the last are read from the row below.
  std::int64_t tail_from_next_row = 0;
  LineScales scales;
  Epilogue epilogue;
  OutputView d;
  bool transposes_output = false;
};

/// Computes D and returns max |f(Z)|, see Epilogue. k may be 0: the accumulators are then 0. Parallel; the bits do not
/// depend on threads or instruction set.
float simulate_gemm(const GemmTask& task);

}  // namespace numcheck::model
