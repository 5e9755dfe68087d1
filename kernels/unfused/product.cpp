#include "kernels/unfused/product.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "kernels/contract/backend.hpp"
#include "kernels/cublas_support/types.hpp"
#include "kernels/cuda_support/check.hpp"

namespace numcheck::kernels::unfused {
namespace {

/// True if a step of the outer dimension is as long as all steps of the inner one, in every operand, so that both are
/// one dimension. The library counts matrices in 32 bits.
bool continues(const BatchDimension& outer, const BatchDimension& inner) {
  return outer.count <= std::numeric_limits<std::int32_t>::max() / inner.count && outer.a == inner.count * inner.a &&
         outer.b == inner.count * inner.b && outer.d == inner.count * inner.d;
}

/// Row-major rows x cols is column-major cols x rows with the same leading dimension.
cublas_support::MatrixLayout layout_of(const cublas_support::CublasLt& lt, cudaDataType_t type, const Stack& stack,
                                       std::int64_t count, std::int64_t stride) {
  return {lt, type, stack.cols, stack.rows, stack.ld, count, stride};
}

/// Largest power of two, at most 256, that divides the address of every matrix at which a call starts.
std::uint32_t alignment_of(const std::vector<BatchDimension>& batch, std::int64_t BatchDimension::* stride,
                           const Stack& stack, std::int64_t element_bytes) {
  std::uint64_t combined = 256 | static_cast<std::uint64_t>(stack.first * element_bytes);
  for (std::size_t i = 1; i < batch.size(); ++i) {
    combined |= static_cast<std::uint64_t>(batch[i].*stride * element_bytes);
  }
  return static_cast<std::uint32_t>(combined & (~combined + 1));
}

std::int64_t calls_of(const std::vector<BatchDimension>& batch) {
  std::int64_t calls = 1;
  for (std::size_t i = 1; i < batch.size(); ++i) {
    calls *= batch[i].count;
  }
  return calls;
}

}  // namespace

std::vector<BatchDimension> merged_batch(const ProductShape& shape) {
  std::vector<BatchDimension> merged;
  for (std::size_t i = kBatchDimensions; i-- > 0;) {  // from the inside
    const BatchDimension next{shape.counts[i], shape.a.stack.strides[i], shape.b.stack.strides[i], shape.d.strides[i]};
    if (next.count == 1) {
      continue;
    }
    if (!merged.empty() && continues(next, merged.back())) {
      merged.back().count *= next.count;
    } else {
      merged.push_back(next);
    }
  }
  if (merged.empty()) {
    merged.emplace_back();
  }
  std::ranges::stable_sort(merged, std::ranges::greater(), &BatchDimension::count);
  return merged;
}

BatchedProduct::BatchedProduct(const cublas_support::CublasLt& lt, const op::Mode& mode, int sm, std::string name,
                               const ProductShape& shape)
    : lt_(lt),
      name_(std::move(name)),
      alpha_(static_cast<float>(shape.alpha)),
      element_bytes_(core::dtype_info(mode.first).storage_bytes),
      batch_(merged_batch(shape)),
      desc_(lt, cublas_support::compute_type(mode.compute), CUDA_R_32F),
      first_(
          layout_of(lt, cublas_support::cuda_type(mode.first), shape.b.stack, batch_.front().count, batch_.front().b)),
      second_(
          layout_of(lt, cublas_support::cuda_type(mode.first), shape.a.stack, batch_.front().count, batch_.front().a)),
      d_(layout_of(lt, cublas_support::cuda_type(mode.first), shape.d, batch_.front().count, batch_.front().d)) {
  desc_.set(CUBLASLT_MATMUL_DESC_TRANSA, shape.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  desc_.set(CUBLASLT_MATMUL_DESC_TRANSB, shape.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  choose_algorithm(sm, shape);
}

void BatchedProduct::choose_algorithm(int sm, const ProductShape& shape) {
  cublas_support::MatmulPreference preference(lt_);
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceLimit);
  const std::uint32_t of_d = alignment_of(batch_, &BatchDimension::d, shape.d, element_bytes_);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                 alignment_of(batch_, &BatchDimension::b, shape.b.stack, element_bytes_));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                 alignment_of(batch_, &BatchDimension::a, shape.a.stack, element_bytes_));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_d);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_d);
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t status = lt_.heuristic(lt_.handle(), desc_.get(), first_.get(), second_.get(), d_.get(),
                                              d_.get(), preference.get(), 1, &result, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0 || result.state != CUBLAS_STATUS_SUCCESS) {
    throw NotSupported(
        fmt::format("cuBLASLt {} offers no algorithm for the product {} on sm_{} ({})", lt_.version(), name_, sm,
                    cuda_support::cublas_status_name(status == CUBLAS_STATUS_SUCCESS ? result.state : status)));
  }
  algorithm_ = result.algo;
  workspace_bytes_ = result.workspaceSize;
  const cublas_support::AlgorithmText text =
      cublas_support::describe_algorithm(cublas_support::reader_of(lt_), algorithm_);
  const auto flags = std::ranges::find(text.details, "flags", &std::pair<std::string, std::string>::first);
  const std::int64_t calls = calls_of(batch_);
  text_ = fmt::format("{}, {}, {} of {} product{}", text.label,
                      flags == text.details.end() ? "flags unknown" : flags->second,
                      calls == 1 ? "one call" : fmt::format("{} calls", calls), batch_.front().count,
                      batch_.front().count == 1 ? "" : "s");
  slices_ = text.rounding.slices;
}

void BatchedProduct::enqueue(const void* a, const void* b, void* d, std::byte* workspace, cudaStream_t stream) const {
  constexpr float kBeta = 0;
  const std::int64_t calls = calls_of(batch_);
  for (std::int64_t call = 0; call < calls; ++call) {
    std::int64_t rest = call, in_a = 0, in_b = 0, in_d = 0;
    for (std::size_t i = 1; i < batch_.size(); ++i) {
      const std::int64_t index = rest % batch_[i].count;
      rest /= batch_[i].count;
      in_a += index * batch_[i].a;
      in_b += index * batch_[i].b;
      in_d += index * batch_[i].d;
    }
    const std::byte* first = static_cast<const std::byte*>(b) + in_b * element_bytes_;
    const std::byte* second = static_cast<const std::byte*>(a) + in_a * element_bytes_;
    std::byte* out = static_cast<std::byte*>(d) + in_d * element_bytes_;
    const cublasStatus_t status =
        lt_.matmul(lt_.handle(), desc_.get(), &alpha_, first, first_.get(), second, second_.get(), &kBeta, out,
                   d_.get(), out, d_.get(), &algorithm_, workspace, workspace_bytes_, stream);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
      throw NotSupported(
          fmt::format("cuBLASLt {} refuses the product {} with the algorithm that its heuristic chose ({})",
                      lt_.version(), name_, text_));
    }
    cuda_support::check(status, fmt::format("cublasLtMatmul ({})", name_));
  }
}

}  // namespace numcheck::kernels::unfused
