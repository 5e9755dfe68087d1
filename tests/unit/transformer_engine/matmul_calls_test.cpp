// Noting the algorithms of cuBLASLt with which another library multiplies.
#include "kernels/transformer_engine/matmul_calls.hpp"

#include <dlfcn.h>

#include <cublasLt.h>
#include <gtest/gtest.h>

namespace numcheck::kernels::transformer_engine {
namespace {

cublasLtMatmulAlgo_t algorithm_of(std::uint64_t id, std::uint64_t split_k, std::uint64_t scheme) {
  return {{id, split_k, scheme}};
}

class MatmulCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(products_, nullptr) << dlerror();
    ASSERT_NE(lt_, nullptr) << dlerror();
    *calls() = 0;
  }
  cublasStatus_t multiply(const cublasLtMatmulAlgo_t* algorithm, void* d = nullptr, cudaStream_t stream = nullptr) {
    using Function = cublasStatus_t (*)(void*, const cublasLtMatmulAlgo_t*, cudaStream_t);
    return reinterpret_cast<Function>(dlsym(products_, "fake_product"))(d, algorithm, stream);
  }
  int* calls() { return static_cast<int*>(dlsym(lt_, "fake_cublaslt_calls")); }
  template <class T>
  T seen(const char* name) {
    return *static_cast<T*>(dlsym(lt_, name));
  }

  void* products_ = dlopen(FAKE_PRODUCTS, RTLD_LAZY | RTLD_LOCAL);
  void* lt_ = dlopen(FAKE_CUBLASLT, RTLD_LAZY | RTLD_NOLOAD);  // which the other was linked against
  MatmulCalls::Algorithms algorithms_;
};

TEST_F(MatmulCallsTest, passes_calls_on_as_they_are) {
  const auto algorithm = algorithm_of(23, 8, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
  int d = 0, stream = 0;
  EXPECT_EQ(multiply(&algorithm, &d, reinterpret_cast<cudaStream_t>(&stream)), CUBLAS_STATUS_ARCH_MISMATCH);
  EXPECT_EQ(*calls(), 1);
  EXPECT_EQ(seen<void*>("fake_cublaslt_output"), &d);
  EXPECT_EQ(seen<void*>("fake_cublaslt_stream"), &stream);
  const MatmulCalls noting(algorithms_);
  EXPECT_EQ(multiply(&algorithm), CUBLAS_STATUS_ARCH_MISMATCH);
  EXPECT_EQ(*calls(), 2);
}

TEST_F(MatmulCallsTest, notes_slices_that_are_added_in_the_outputs_format) {
  const auto algorithm = algorithm_of(23, 8, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
  {
    const MatmulCalls noting(algorithms_);
    multiply(&algorithm);
  }
  multiply(&algorithm);
  ASSERT_EQ(algorithms_.size(), 1U) << "the second call was not to be noted";
  const Shown shown = shown_by(algorithms_);
  EXPECT_EQ(shown.slices, 8);
  ASSERT_GT(shown.details.size(), 4U);
  EXPECT_EQ(shown.details[0].first, "cublaslt");
  EXPECT_NE(shown.details[0].second.find("algo 23"), std::string::npos) << shown.details[0].second;
  EXPECT_NE(shown.details[0].second.find("split-k 8 (output_type)"), std::string::npos) << shown.details[0].second;
  EXPECT_EQ(shown.details[1].second, "23");
}

TEST_F(MatmulCallsTest, slices_that_are_added_in_fp32_are_none) {
  const auto algorithm = algorithm_of(23, 8, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  const MatmulCalls noting(algorithms_);
  multiply(&algorithm);
  EXPECT_EQ(shown_by(algorithms_).slices, 1);
}

TEST_F(MatmulCallsTest, an_algorithm_that_the_library_chooses_by_itself_is_unknown) {
  const MatmulCalls noting(algorithms_);
  EXPECT_EQ(multiply(nullptr), CUBLAS_STATUS_ARCH_MISMATCH);
  EXPECT_EQ(*calls(), 1);
  EXPECT_TRUE(algorithms_.empty());
  EXPECT_TRUE(shown_by(algorithms_).details.empty());
}

TEST_F(MatmulCallsTest, several_products_have_the_most_slices_of_any) {
  const auto whole = algorithm_of(23, 1, CUBLASLT_REDUCTION_SCHEME_NONE);
  const auto split = algorithm_of(24, 132, CUBLASLT_REDUCTION_SCHEME_INPLACE);
  const MatmulCalls noting(algorithms_);
  for (const auto* algorithm : {&whole, &split, &whole}) {
    multiply(algorithm);
  }
  const Shown shown = shown_by(algorithms_);
  EXPECT_EQ(shown.slices, 132);
  ASSERT_EQ(shown.details.size(), 1U);
  const std::string& text = shown.details[0].second;
  EXPECT_NE(text.find("algo 23"), std::string::npos) << text;
  EXPECT_NE(text.find("(2 of 3 products); "), std::string::npos) << text;
  EXPECT_NE(text.find("split-k 132 (inplace) (1 of 3 products)"), std::string::npos) << text;
}

TEST_F(MatmulCallsTest, groups_have_slices_of_their_own) {
  const auto whole = algorithm_of(23, 1, CUBLASLT_REDUCTION_SCHEME_NONE);
  const auto split = algorithm_of(24, 132, CUBLASLT_REDUCTION_SCHEME_INPLACE);
  const MatmulCalls noting(algorithms_);
  multiply(&split);
  multiply(&whole);
  const Shown shown = shown_by(algorithms_, {false, true, false, true});
  EXPECT_EQ(shown.group_slices, (std::vector<int>{1, 132, 1, 1}));
  EXPECT_EQ(shown.slices, 132);
  const Shown unknown = shown_by(algorithms_, {true, true, true});
  EXPECT_TRUE(unknown.group_slices.empty()) << "nobody knows whose call is whose";
  EXPECT_EQ(unknown.slices, 132);
}

TEST_F(MatmulCallsTest, the_next_launch_begins_anew) {
  const auto algorithm = algorithm_of(23, 8, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE);
  for (int i = 0; i < 2; ++i) {
    const MatmulCalls noting(algorithms_);
    multiply(&algorithm);
  }
  EXPECT_EQ(algorithms_.size(), 1U);
}

}  // namespace
}  // namespace numcheck::kernels::transformer_engine
