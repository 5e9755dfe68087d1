#include "tests/gpu/k_fault_plan.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include <cuda_fp16.h>

#include "tests/gpu/real_cublaslt.hpp"

namespace numcheck::wrapping {
namespace {

using kernels::cuda::Storage;

constexpr std::int64_t kTail = 8;
constexpr std::int64_t kStage = 64;

template <class T>
T layout_value(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute) {
  T value{};
  std::size_t written = 0;
  if (real<decltype(&cublasLtMatrixLayoutGetAttribute)>("cublasLtMatrixLayoutGetAttribute")(
          layout, attribute, &value, sizeof value, &written) != CUBLAS_STATUS_SUCCESS) {
    stop("a layout does not tell an attribute");
  }
  return value;
}

template <class T>
T desc_value(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute) {
  T value{};
  std::size_t written = 0;
  if (real<decltype(&cublasLtMatmulDescGetAttribute)>("cublasLtMatmulDescGetAttribute")(
          desc, attribute, &value, sizeof value, &written) != CUBLAS_STATUS_SUCCESS) {
    stop("a descriptor does not tell an attribute");
  }
  return value;
}

std::optional<Storage> storage_of(std::uint32_t type) {
  switch (static_cast<cudaDataType_t>(type)) {
    case CUDA_R_32F:
      return Storage::fp32;
    case CUDA_R_16BF:
      return Storage::bf16;
    case CUDA_R_16F:
      return Storage::fp16;
    case CUDA_R_8F_E4M3:
      return Storage::fp8_e4m3;
    case CUDA_R_8F_E5M2:
      return Storage::fp8_e5m2;
    default:
      return std::nullopt;
  }
}

struct ReadMatrix {
  Matrix matrix;
  std::string obstacle;
};

ReadMatrix read_matrix(void* data, cublasLtMatrixLayout_t layout, std::int32_t operation) {
  const auto storage = storage_of(layout_value<std::uint32_t>(layout, CUBLASLT_MATRIX_LAYOUT_TYPE));
  if (!storage.has_value()) {
    return {{}, "a matrix has another format than FP32, BF16, FP16 and FP8"};
  }
  if (layout_value<std::int32_t>(layout, CUBLASLT_MATRIX_LAYOUT_ORDER) != CUBLASLT_ORDER_COL) {
    return {{}, "a matrix is not stored by columns"};
  }
  Matrix matrix;
  matrix.data = data;
  matrix.storage = *storage;
  matrix.rows = static_cast<std::int64_t>(layout_value<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS));
  matrix.cols = static_cast<std::int64_t>(layout_value<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS));
  matrix.ld = layout_value<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD);
  matrix.batch_stride = layout_value<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  matrix.transposed = operation != CUBLAS_OP_N;
  if (matrix.transposed) {
    std::swap(matrix.rows, matrix.cols);
  }
  return {matrix, {}};
}

/// Whether a scale is one number for the whole tensor. Older libraries have no other kind, and no attribute for it.
bool has_tensor_scales(cublasLtMatmulDesc_t desc) {
#if CUBLAS_VERSION >= 120800
  for (const auto mode :
       {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_DESC_D_SCALE_MODE}) {
    if (desc_value<std::int32_t>(desc, mode) != CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F) {
      return false;
    }
  }
#else
  static_cast<void>(desc);
#endif
  return true;
}

/// Why the descriptor asks for more than alpha op(A) op(B) and an addend, in terms that this library does not read.
std::string desc_obstacle(cublasLtMatmulDesc_t desc) {
  if (desc_value<std::uint32_t>(desc, CUBLASLT_MATMUL_DESC_EPILOGUE) != CUBLASLT_EPILOGUE_DEFAULT) {
    return "it has an epilogue";
  }
  if (desc_value<std::int32_t>(desc, CUBLASLT_MATMUL_DESC_POINTER_MODE) != CUBLASLT_POINTER_MODE_HOST) {
    return "alpha is not in host memory";
  }
  const auto scale = desc_value<std::int32_t>(desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE);
  if (scale != CUDA_R_32F && scale != CUDA_R_16F) {
    return "alpha is neither FP32 nor FP16";
  }
  return has_tensor_scales(desc) ? std::string() : "its scales are not those of whole tensors";
}

double read_alpha(const MatmulCall& call) {
  if (desc_value<std::int32_t>(call.desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE) == CUDA_R_16F) {
    return __half2float(*static_cast<const __half*>(call.alpha));
  }
  return *static_cast<const float*>(call.alpha);
}

/// A fault, the shortest k that it can be planted in, and its terms.
struct Row {
  std::string_view name;
  std::int64_t least;
  KFault (*terms)(std::int64_t k, std::int64_t slices);
};

constexpr std::array kFaults = {
    Row{"missing_k_tail", 1, [](std::int64_t k, std::int64_t) { return KFault{{{k - 1, k, -1}}}; }},
    Row{"missing_k_tail_8", 2 * kStage, [](std::int64_t k, std::int64_t) { return KFault{{{k - kTail, k, -1}}}; }},
    Row{"missing_k_stage", 2 * kStage, [](std::int64_t, std::int64_t) { return KFault{{{kStage, 2 * kStage, -1}}}; }},
    Row{"unreduced_split_k", 2, [](std::int64_t k, std::int64_t) { return KFault{{{k / 2, k, -1}}}; }},
    Row{"missing_split", 2,
        [](std::int64_t k, std::int64_t slices) { return KFault{{{k / slices, 2 * k / slices, -1}}}; }},
    Row{"doubled_split_head", 2 * kStage,
        [](std::int64_t k, std::int64_t slices) { return KFault{{{k / slices, k / slices + 1, 1}}}; }},
    Row{"stale_k_tail", 2 * kStage,
        [](std::int64_t k, std::int64_t) { return KFault{{{k - kTail, k, -1}, {k - kTail, k, 1, kStage}}}; }},
    Row{"k_tail_of_next_row", kTail,
        [](std::int64_t k, std::int64_t) { return KFault{{{k - kTail, k, -1}, {k - kTail, k, 1, 0, 1}}}; }},
};

}  // namespace

ReadProduct read_product(const MatmulCall& call) {
  ReadProduct read;
  read.obstacle = desc_obstacle(call.desc);
  if (!read.obstacle.empty()) {
    return read;
  }
  // Operands are only read.
  const auto a = read_matrix(const_cast<void*>(call.a), call.a_layout,
                             desc_value<std::int32_t>(call.desc, CUBLASLT_MATMUL_DESC_TRANSA));
  const auto b = read_matrix(const_cast<void*>(call.b), call.b_layout,
                             desc_value<std::int32_t>(call.desc, CUBLASLT_MATMUL_DESC_TRANSB));
  const auto d = read_matrix(call.d, call.d_layout, CUBLAS_OP_N);
  for (const ReadMatrix& operand : {a, b, d}) {
    if (!operand.obstacle.empty()) {
      read.obstacle = operand.obstacle;
      return read;
    }
  }
  read.product = {a.matrix, b.matrix, d.matrix};
  read.product.batch = layout_value<std::int32_t>(call.d_layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  read.product.alpha = read_alpha(call);
  read.product.a_scale = desc_value<const float*>(call.desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER);
  read.product.b_scale = desc_value<const float*>(call.desc, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
  read.product.d_scale = desc_value<const float*>(call.desc, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER);
  return read;
}

std::int64_t slices_of(const cublasLtMatmulAlgo_t* algorithm) {
  constexpr std::int32_t kLeast = 2;
  std::int32_t slices = 0;
  std::size_t written = 0;
  if (algorithm == nullptr ||
      real<decltype(&cublasLtMatmulAlgoConfigGetAttribute)>("cublasLtMatmulAlgoConfigGetAttribute")(
          algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &slices, sizeof slices, &written) != CUBLAS_STATUS_SUCCESS) {
    return kLeast;
  }
  return std::max(slices, kLeast);  // negative: stream-K
}

PlannedFault plan_fault(std::string_view name, const Product& product, std::int64_t slices) {
  const auto* found = std::ranges::find(kFaults, name, &Row::name);
  if (found == kFaults.end()) {
    stop(("NUMCHECK_K_FAULT: there is no fault " + std::string(name)).c_str());
  }
  const std::int64_t k = product.k();
  if (k < found->least) {
    return {{}, "k is too short"};
  }
  const KFault fault = found->terms(k, std::min(slices, k));
  for (const Term& term : fault.terms) {
    if (term.columns >= product.d.cols) {
      return {{}, "there is no next row"};
    }
  }
  return {fault, {}};
}

}  // namespace numcheck::wrapping
