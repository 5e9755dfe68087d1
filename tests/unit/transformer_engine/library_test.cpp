#include "kernels/transformer_engine/library.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "kernels/contract/backend.hpp"
#include "kernels/transformer_engine/companions.hpp"
#include "kernels/transformer_engine/inspect.hpp"
#include "kernels/transformer_engine/tensor.hpp"
#include "tests/unit/harness/fake.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

namespace fs = std::filesystem;

Installed fake(const char* file, const char* version = "2.11.0") {
  return {file, parse_version(version)};
}

const Library& library() {
  static const Library loaded(fake(TE_FAKE_LIBRARY), "");
  return loaded;
}

/// The kind of exception that the call throws.
template <class Error, class Call>
std::string thrown(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

TEST(TeErrors, are_shortened) {
  EXPECT_EQ(error_text("nvte_gelu", "/a/b/c.cu:12 in function f: Wrong shape. "), "nvte_gelu: Wrong shape (c.cu:12)");
  EXPECT_EQ(error_text("nvte_gelu", "something else"), "nvte_gelu: something else");
  EXPECT_EQ(readable_name(kPermute.name), "nvte_permute");
  EXPECT_EQ(readable_name("nvte_gelu"), "nvte_gelu");
}

TEST(TeErrors, refusals_are_distinguished_from_failures) {
  for (const char* refusal : {"Unsupported shape.", "FP4 GEMM output is not supported!",
                              "Not implemented scaling mode: 3.", "Unable to find any suitable algorithms"}) {
    EXPECT_TRUE(is_refusal(refusal)) << refusal;
  }
  for (const char* failure : {"CUDA Error: operation not supported", "Wrong dimension of output.",
                              "NVRTC Error: unsupported toolchain", "CUDA Error: out of memory", ""}) {
    EXPECT_FALSE(is_refusal(failure)) << failure;
  }
}

TEST(TeLibrary, makes_tensors) {
  float memory[6] = {};
  const Tensor tensor(library(), memory, kFloat32, {2, 3});
  const Shape shape = library().call(kTensorShape, tensor.handle());
  EXPECT_EQ(shape.ndim, 2U);
  EXPECT_EQ(shape.data[0], 2U);
  EXPECT_EQ(shape.data[1], 3U);
  EXPECT_EQ(library().call(kTensorType, tensor.handle()), kFloat32);
}

TEST(TeLibrary, asks_for_a_workspace_and_then_works_in_it) {
  const Tensor tensor(library());
  Workspace workspace(library());
  const auto call = [&] {
    library().call(kRmsnormFwd, tensor.handle(), tensor.handle(), 1e-5F, tensor.handle(), tensor.handle(),
                   workspace.handle(), 132, false, nullptr);
  };
  call();
  ASSERT_EQ(workspace.bytes(), 3 * 5 * sizeof(float));
  std::byte memory[3 * 5 * sizeof(float)] = {};
  workspace.set_memory(memory);
  call();
  EXPECT_EQ(memory[0], std::byte{42});
}

TEST(TeLibrary, exceptions_of_the_library_are_caught_at_the_call) {
  const auto gemm = [] {
    library().call(kGemm, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  };
  EXPECT_EQ(thrown<NotSupported>(gemm),
            "TransformerEngine says: nvte_cublas_gemm_v2: Unable to find suitable cuBLAS GEMM algorithm "
            "(cublaslt_gemm.cu:12)");
  const auto unary = [](const Unary& function) { library().call(function, nullptr, nullptr, nullptr); };
  EXPECT_EQ(thrown<core::EnvironmentError>([&] { unary(kGelu); }),
            "nvte_gelu: Assertion failed: t.has_data(). Input is not allocated! (x.cpp:155)");
  EXPECT_EQ(thrown<core::EnvironmentError>([&] { unary(kSilu); }), "nvte_silu: an exception of an unknown kind");
  EXPECT_EQ(thrown<core::EnvironmentError>([&] { unary(kRelu); }),
            "nvte_relu: CUDA Error: operation not supported (a.cu:1)");
}

TEST(TeLibrary, a_missing_function_is_a_sentence) {
  EXPECT_TRUE(library().lacks({kGelu.name, kGemm.name}).empty());
  const std::string sentence = "TransformerEngine 2.11.0 has no nvte_permute; install a version that has it";
  EXPECT_EQ(library().lacks({kGelu.name, kPermute.name}), sentence);
  EXPECT_EQ(thrown<NotSupported>([] {
              library().call(kPermute, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, 0, 0, 0,
                             nullptr);
            }),
            sentence);
}

TEST(TeLibrary, refuses_what_is_not_a_core_library) {
  EXPECT_NE(thrown<core::EnvironmentError>([] {
              Library(fake(TE_FAKE_LIBRARY_WITHOUT_GEMM), "");
            }).find("is not a core library of TransformerEngine 2.9 or newer"),
            std::string::npos);
  const numcheck::test::TemporaryFolder folder;
  const std::string text =
      thrown<core::EnvironmentError>([&] { Library(fake((folder.path() / "no.so").c_str()), ""); });
  EXPECT_EQ(text.find("TransformerEngine 2.11.0 ("), 0U) << text;
  EXPECT_NE(text.find("does not load: "), std::string::npos) << text;
}

TEST(TeLibrary, brings_in_what_the_file_needs) {
  // Linked against a companion in a folder that the loader does not search.
  ASSERT_EQ(companions_of(TE_FAKE_LIBRARY_IN_NEED), std::vector<std::string>{"libnvfake.so"});
  const std::string text = thrown<core::EnvironmentError>([] { Library(fake(TE_FAKE_LIBRARY_IN_NEED), "/nowhere"); });
  EXPECT_NE(text.find("not found: libnvfake.so"), std::string::npos) << text;
  EXPECT_NE(text.find("--lib-dir"), std::string::npos) << text;
  const Library loaded(fake(TE_FAKE_LIBRARY_IN_NEED), TE_FAKE_COMPANION_FOLDER);
  EXPECT_TRUE(loaded.has(kGemm.name));
}

TEST(TeInspection, says_version_path_and_what_is_missing) {
  const std::vector<std::string> asked = {TE_FAKE_LIBRARY};
  const cuda_support::Inspection inspection = inspect_library(asked, "");
  EXPECT_TRUE(inspection.usable);
  EXPECT_EQ(inspection.version, "");
  EXPECT_EQ(inspection.file, TE_FAKE_LIBRARY);
  EXPECT_EQ(inspection.remark.find("it lacks "), 0U) << inspection.remark;
  EXPECT_NE(inspection.remark.find("nvte_permute"), std::string::npos);
  EXPECT_EQ(inspection.remark.find("nvte_gelu,"), std::string::npos);
  EXPECT_EQ(inspection.remark.find("nvte_set_tensor_param"), std::string::npos);
}

/// A library that the user names: everything that can be tested without a device.
TEST(TeLibrary, of_this_machine) {
  const char* path = std::getenv("TE_NUMCHECK_TE_LIB");
  if (path == nullptr) {
    GTEST_SKIP() << "TE_NUMCHECK_TE_LIB names no library";
  }
  Search search = find_library({});
  ASSERT_TRUE(search.found.has_value()) << search.problem;
  const Library real(*search.found, "");
  float memory[4] = {};
  const Tensor input(real, memory, kFloat8E4m3, {2, 2}), output(real, memory, kFloat32, {2, 2});
  EXPECT_EQ(real.call(kTensorShape, input.handle()).data[1], 2U);
  // FP8 without its scale: refused before anything is launched.
  EXPECT_NE(thrown<core::EnvironmentError>([&] {
              real.call(kGelu, input.handle(), output.handle(), nullptr);
            }).find("nvte_gelu: Assertion failed"),
            std::string::npos);
  EXPECT_TRUE(real.lacks({kPermute.name, kUnpermute.name, kRouterTopk.name, kDropoutFwd.name}).empty());
}

/// The harness turns a refusal at launch into the outcome.
TEST(TeRefusal, makes_the_case_unsupported) {
  using kernels::test::FakeBackend;
  kernels::test::TestCase problem(kernels::test::shape(4, 4, 4), "fp32");
  FakeBackend backend;
  backend.misbehave = [](std::span<const PortMemory>, std::byte*, int) { throw NotSupported("no such shape"); };
  EXPECT_TRUE(problem.run(backend).empty());
  EXPECT_EQ(problem.outcome.kind, worker::Outcome::Kind::unsupported);
  EXPECT_EQ(problem.outcome.reason, "no such shape");
}

}  // namespace
}  // namespace numcheck::kernels::transformer_engine
