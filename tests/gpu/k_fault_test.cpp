// The faults that k_fault_cublaslt.cpp plants, by the kernel's own code, in host memory: what they change is computed
// here again, row by row of the program's operands. Descriptors are the real library's, which need no GPU.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include "tests/gpu/k_fault_plan.hpp"

namespace numcheck::wrapping {
namespace {

constexpr std::int64_t kRows = 5, kColumns = 6, kBatch = 2, kPad = 3;

/// An element of the program's A, and the k of B that it is multiplied by.
struct Factor {
  std::int64_t row, of_a, of_b;
};

/// The products that are summed in a row of D, with the fault.
std::vector<Factor> products_of(const std::string& fault, std::int64_t row, std::int64_t k, std::int64_t slices) {
  std::vector<Factor> products;
  const bool last_row = row + 1 == kRows;
  for (std::int64_t t = 0; t < k; ++t) {
    const bool tail = t >= k - 8;
    const bool missing = (fault == "missing_k_tail" && t == k - 1) || (fault == "missing_k_tail_8" && tail) ||
                         (fault == "missing_k_stage" && t >= 64 && t < 128) ||
                         (fault == "unreduced_split_k" && t >= k / 2) ||
                         (fault == "missing_split" && t >= k / slices && t < 2 * k / slices);
    const int times = missing ? 0 : fault == "doubled_split_head" && t == k / slices ? 2 : 1;
    const std::int64_t earlier = fault == "stale_k_tail" && tail ? 64 : 0;
    const std::int64_t below = fault == "k_tail_of_next_row" && tail && !last_row ? 1 : 0;
    products.insert(products.end(), static_cast<std::size_t>(times), {row + below, t - earlier, t - earlier});
  }
  return products;
}

/// Row-major matrices with padding between the rows and batches of them.
template <class T>
struct Tensor {
  Tensor(std::int64_t stored_rows, std::int64_t stored_cols)
      : rows(stored_rows), cols(stored_cols), values(static_cast<std::size_t>(kBatch * rows * (cols + kPad))) {}
  [[nodiscard]] T& at(std::int64_t batch, std::int64_t row, std::int64_t col) {
    return values[static_cast<std::size_t>((batch * rows + row) * (cols + kPad) + col)];
  }

  std::int64_t rows, cols;
  std::vector<T> values;
};

/// What the library is told about a row-major tensor: that it is its transpose, stored by columns.
class Layout {
 public:
  template <class T>
  Layout(const Tensor<T>& tensor, cudaDataType_t type) {
    const std::int64_t ld = tensor.cols + kPad, stride = tensor.rows * ld;
    const auto batch = static_cast<std::int32_t>(kBatch);
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout_, type, static_cast<std::uint64_t>(tensor.cols),
                                         static_cast<std::uint64_t>(tensor.rows), ld),
              CUBLAS_STATUS_SUCCESS);
    cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  [[nodiscard]] cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Desc {
 public:
  explicit Desc(cudaDataType_t scale) {
    EXPECT_EQ(cublasLtMatmulDescCreate(&desc_, scale == CUDA_R_16F ? CUBLAS_COMPUTE_16F : CUBLAS_COMPUTE_32F, scale),
              CUBLAS_STATUS_SUCCESS);
  }
  ~Desc() { cublasLtMatmulDescDestroy(desc_); }
  Desc(const Desc&) = delete;
  Desc& operator=(const Desc&) = delete;
  template <class V>
  void set(cublasLtMatmulDescAttributes_t attribute, V value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }
  [[nodiscard]] cublasLtMatmulDesc_t get() const { return desc_; }

 private:
  cublasLtMatmulDesc_t desc_ = nullptr;
};

/// A product in host memory. Factors are small integers, so that every sum is exact in FP32 and in D's format.
template <class A, class B, class D>
class HostProduct {
 public:
  HostProduct(std::int64_t k, bool trans_a, bool trans_b)
      : k_(k),
        trans_a_(trans_a),
        trans_b_(trans_b),
        a_(trans_a ? k : kRows, trans_a ? kRows : k),
        b_(trans_b ? kColumns : k, trans_b ? k : kColumns),
        d_(kRows, kColumns) {
    for (std::int64_t batch = 0; batch < kBatch; ++batch) {
      for (std::int64_t t = 0; t < k; ++t) {
        for (std::int64_t i = 0; i < kRows; ++i) {
          a(batch, i, t) = A(static_cast<float>((7 * i + 3 * t + t / 5 + batch) % 4 - 1));
        }
        for (std::int64_t j = 0; j < kColumns; ++j) {
          b(batch, t, j) = B(static_cast<float>((5 * j + 2 * t + t / 3 + batch) % 3 - 1));
        }
      }
    }
  }

  /// alpha times the sum that the fault leaves, times the scales if there are any.
  double expected(const std::string& fault, std::int64_t batch, std::int64_t row, std::int64_t column,
                  std::int64_t slices) {
    double sum = 0;
    for (const Factor& f : products_of(fault, row, k_, slices)) {
      sum += static_cast<double>(float(a(batch, f.row, f.of_a))) * float(b(batch, f.of_b, column));
    }
    return kAlpha * sum * (scaled_ ? a_scale_ * b_scale_ * d_scale_ : 1.0);
  }

  void compute() {
    for_each([this](std::int64_t batch, std::int64_t i, std::int64_t j) {
      d_.at(batch, i, j) = D(static_cast<float>(expected("", batch, i, j, 1)));
    });
  }

  void use_scales(Desc& desc) {
    scaled_ = true;
    desc.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(&b_scale_));
    desc.set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(&a_scale_));
    desc.set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, static_cast<const void*>(&d_scale_));
  }

  /// Describes the product as kernels/cublaslt/problem.cpp does.
  ReadProduct read(Desc& desc, const void* alpha, cudaDataType_t of_a, cudaDataType_t of_b, cudaDataType_t of_d) {
    desc.set(CUBLASLT_MATMUL_DESC_TRANSA, trans_b_ ? CUBLAS_OP_T : CUBLAS_OP_N);
    desc.set(CUBLASLT_MATMUL_DESC_TRANSB, trans_a_ ? CUBLAS_OP_T : CUBLAS_OP_N);
    const Layout a_layout(a_, of_a), b_layout(b_, of_b), d_layout(d_, of_d);
    return read_product({desc.get(), alpha, b_.values.data(), b_layout.get(), a_.values.data(), a_layout.get(),
                         d_.values.data(), d_layout.get()});
  }

  void expect_holds(const std::string& fault, std::int64_t slices) {
    int changed = 0;
    for_each([&](std::int64_t batch, std::int64_t i, std::int64_t j) {
      const double wanted = float(D(static_cast<float>(expected(fault, batch, i, j, slices))));
      EXPECT_EQ(float(d_.at(batch, i, j)), wanted) << fault << " " << batch << " " << i << " " << j;
      changed += wanted != expected("", batch, i, j, slices);
    });
    EXPECT_GT(changed, kRows * kColumns / 2) << fault;
    for (std::int64_t i = 0; i < kRows; ++i) {
      EXPECT_EQ(float(d_.at(0, i, kColumns + 1)), 0) << "padding";
    }
  }

  static constexpr double kAlpha = 0.5;

 private:
  A& a(std::int64_t batch, std::int64_t i, std::int64_t t) {
    return trans_a_ ? a_.at(batch, t, i) : a_.at(batch, i, t);
  }
  B& b(std::int64_t batch, std::int64_t t, std::int64_t j) {
    return trans_b_ ? b_.at(batch, j, t) : b_.at(batch, t, j);
  }
  static void for_each(const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& f) {
    for (std::int64_t batch = 0; batch < kBatch; ++batch) {
      for (std::int64_t i = 0; i < kRows; ++i) {
        for (std::int64_t j = 0; j < kColumns; ++j) {
          f(batch, i, j);
        }
      }
    }
  }

  std::int64_t k_;
  bool trans_a_, trans_b_, scaled_ = false;
  Tensor<A> a_;
  Tensor<B> b_;
  Tensor<D> d_;
  float a_scale_ = 2, b_scale_ = 0.25F, d_scale_ = 0.5F;
};

const std::vector<std::string> kNames = {"missing_k_tail",    "missing_k_tail_8",  "missing_k_stage",
                                         "unreduced_split_k", "missing_split",     "doubled_split_head",
                                         "stale_k_tail",      "k_tail_of_next_row"};

/// Plants every fault in a product of these formats.
template <class A, class B, class D>
void expect_all(cudaDataType_t of_a, cudaDataType_t of_b, cudaDataType_t of_d, bool trans_a, bool trans_b,
                bool scaled = false) {
  const float alpha = 0.5F;
  for (const std::string& name : kNames) {
    for (const std::int64_t slices : {2, 3}) {
      HostProduct<A, B, D> host(131, trans_a, trans_b);
      Desc desc(CUDA_R_32F);
      if (scaled) {
        host.use_scales(desc);
      }
      host.compute();
      const ReadProduct read = host.read(desc, &alpha, of_a, of_b, of_d);
      ASSERT_EQ(read.obstacle, "");
      const PlannedFault planned = plan_fault(name, read.product, slices);
      ASSERT_EQ(planned.obstacle, "");
      plant_k_fault_on_host(read.product, planned.fault);
      host.expect_holds(name, slices);
    }
  }
}

TEST(KFault, changes_the_products_that_it_names_in_every_layout) {
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      expect_all<float, float, float>(CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, trans_a, trans_b);
    }
  }
}

TEST(KFault, changes_the_products_that_it_names_in_every_format) {
  expect_all<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16>(CUDA_R_16BF, CUDA_R_16BF, CUDA_R_16BF, false, true);
  expect_all<__half, __half, __half>(CUDA_R_16F, CUDA_R_16F, CUDA_R_16F, true, false);
  expect_all<__half, __half, float>(CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, false, false);
}

TEST(KFault, applies_the_scales_of_fp8) {
  expect_all<__nv_fp8_e4m3, __nv_fp8_e5m2, float>(CUDA_R_8F_E4M3, CUDA_R_8F_E5M2, CUDA_R_32F, false, true, true);
  expect_all<__nv_fp8_e4m3, __nv_fp8_e4m3, __nv_bfloat16>(CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16BF, false, true,
                                                          true);
}

TEST(KFault, rounds_fp8_outputs) {
  // Sums of 8 products are multiples of 1/2 up to 8, which E4M3 has.
  const float alpha = 0.5F;
  HostProduct<__nv_fp8_e4m3, __nv_fp8_e4m3, __nv_fp8_e4m3> host(8, false, true);
  Desc desc(CUDA_R_32F);
  host.compute();
  const ReadProduct read = host.read(desc, &alpha, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3);
  ASSERT_EQ(read.obstacle, "");
  plant_k_fault_on_host(read.product, plan_fault("unreduced_split_k", read.product, 2).fault);
  host.expect_holds("unreduced_split_k", 2);
}

TEST(KFault, reads_an_fp16_alpha) {
  const __half alpha(0.5F);
  HostProduct<__half, __half, __half> host(131, false, true);
  Desc desc(CUDA_R_16F);
  host.compute();
  const ReadProduct read = host.read(desc, &alpha, CUDA_R_16F, CUDA_R_16F, CUDA_R_16F);
  ASSERT_EQ(read.obstacle, "");
  EXPECT_EQ(read.product.alpha, 0.5);
  plant_k_fault_on_host(read.product, plan_fault("missing_k_tail", read.product, 2).fault);
  host.expect_holds("missing_k_tail", 2);
}

TEST(KFault, leaves_alone_what_it_cannot_read) {
  const float alpha = 0.5F;
  HostProduct<float, float, float> host(32, false, true);
  Desc plain(CUDA_R_32F), relu(CUDA_R_32F);
  const ReadProduct read = host.read(plain, &alpha, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F);
  ASSERT_EQ(read.obstacle, "");
  EXPECT_EQ(plan_fault("missing_k_stage", read.product, 2).obstacle, "k is too short");
  relu.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU);
  EXPECT_EQ(host.read(relu, &alpha, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F).obstacle, "it has an epilogue");
  EXPECT_EQ(host.read(plain, &alpha, CUDA_R_8I, CUDA_R_8I, CUDA_R_32F).obstacle,
            "a matrix has another format than FP32, BF16, FP16 and FP8");
}

}  // namespace
}  // namespace numcheck::wrapping
