// cuBLASLt and our own kernel on a real GPU, against results that are known exactly.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "gemm_cases.hpp"
#include "kernels/cuda/bindings.hpp"
#include "kernels/loader/backend_set.hpp"
#include "kernels/loader/probe.hpp"

namespace numcheck::kernels::test {
namespace {

using op::GemmParams;

class GpuGemm : public ::testing::Test {
 protected:
  void SetUp() override {
    const loader::DriverState driver = loader::probe_driver();
    if (driver.kind != loader::DriverState::Kind::works) {
      GTEST_SKIP() << "no usable GPU: " << driver.sentence;
    }
    if (!device_) {
      static const Binding* const own_gemm = &cuda::gemm();
      ExecutorOptions options;
      options.bindings = Bindings(&own_gemm, 1);
      device_ = loader::open_cuda_device(0, options);
    }
  }

  [[nodiscard]] static bool has_fp8() { return device_->device().sm >= 89; }
  [[nodiscard]] static Backend& lt() { return *device_->find("cublaslt"); }
  [[nodiscard]] static Backend& own() { return *device_->find("cuda"); }

  static inline std::unique_ptr<loader::CudaBackends> device_;
};

/// Products of integers up to 5 along at most 48 steps are exact in every accumulator, FP16's included.
const std::vector<GemmParams>& plain_shapes() {
  static const std::vector<GemmParams> all = {shape(1, 1, 1),    shape(1, 8, 3),    shape(16, 16, 16),
                                              shape(64, 64, 32), shape(65, 33, 17), shape(130, 72, 48),
                                              shape(3, 129, 7)};
  return all;
}

TEST_F(GpuGemm, every_plain_mode_is_exact_on_integers) {
  for (const char* mode :
       {"fp32", "fp32_pedantic", "tf32", "fp32_fast16f", "fp32_fast16bf", "bf16x9", "bf16", "fp16", "fp16_acc16"}) {
    for (const GemmParams& params : plain_shapes()) {
      TestCase test(params, mode);
      test.c.algorithms.kind = plan::AlgorithmSpec::Kind::all;
      expect_exact(lt(), test);
    }
  }
}

TEST_F(GpuGemm, own_kernel_is_exact_on_integers) {
  for (const char* mode : {"fp32", "fp32_pedantic", "bf16", "fp16"}) {
    for (const GemmParams& params : plain_shapes()) {
      TestCase test(params, mode);
      expect_exact(own(), test);
    }
  }
}

TEST_F(GpuGemm, layouts_padding_batches_and_misalignment) {
  for (int bits = 0; bits < 32; ++bits) {
    GemmParams params = shape(33, 40, 24);
    params.trans_a = (bits & 1) != 0;
    params.trans_b = (bits & 2) != 0;
    params.batch = (bits & 4) != 0 ? 3 : 1;
    params.misalign = (bits & 8) != 0 ? 1 : 0;
    if ((bits & 16) != 0) {
      params.pad_a = 3;
      params.pad_b = 5;
      params.pad_d = 7;
    }
    for (const char* mode : {"fp32", "bf16", "fp16"}) {
      TestCase for_lt(params, mode), for_own(params, mode);
      expect_exact(lt(), for_lt);
      expect_exact(own(), for_own);
    }
  }
}

TEST_F(GpuGemm, factors_bias_epilogues_and_wider_output) {
  for (const char* epilogue : {"none", "relu", "gelu"}) {
    for (int bits = 0; bits < 8; ++bits) {
      GemmParams params = shape(48, 40, 16);
      params.epilogue = epilogue;
      params.bias = (bits & 1) != 0;
      params.beta = (bits & 2) != 0 ? -2 : 0;
      params.alpha = (bits & 4) != 0 ? 0.5 : -1;
      for (const char* mode : {"fp32", "bf16", "fp16"}) {
        for (const char* output : {"default", "fp32"}) {
          params.output = output;
          TestCase for_lt(params, mode), for_own(params, mode);
          // tanh.approx has a relative error of 2^-11 (PTX ISA); tanhf of 2 ulp (CUDA math library).
          expect_exact(lt(), for_lt, 0x1p-10);
          expect_exact(own(), for_own, 0x1p-21);
        }
      }
    }
  }
}

TEST_F(GpuGemm, adds_to_d_in_place) {
  for (int bits = 0; bits < 8; ++bits) {
    GemmParams params = shape(48, 40, 16);
    params.in_place = true;
    params.beta = (bits & 1) != 0 ? 1 : -2;
    params.batch = (bits & 2) != 0 ? 3 : 1;
    params.pad_d = (bits & 4) != 0 ? 8 : 0;
    for (const char* mode : {"fp32", "bf16", "fp16"}) {
      for (const char* output : {"default", "fp32"}) {
        params.output = output;
        TestCase for_lt(params, mode), for_own(params, mode);
        expect_exact(lt(), for_lt);
        expect_exact(own(), for_own);
      }
    }
  }
}

TEST_F(GpuGemm, fp8_every_output_and_accumulation) {
  if (!has_fp8()) {
    GTEST_SKIP() << "FP8 needs sm_89; this is sm_" << device_->device().sm;
  }
  for (const char* mode : {"fp8_e4m3", "fp8_hybrid"}) {
    for (const char* output : {"default", "fp32", "fp16", "fp8_e4m3", "fp8_e5m2"}) {
      if (std::string_view(output) == "fp8_e5m2" && std::string_view(mode) == "fp8_e4m3") {
        continue;
      }
      for (const char* accumulate : {"fast", "split"}) {
        GemmParams params = shape(48, 64, 32);
        params.trans_b = true;
        params.output = output;
        params.accumulate = accumulate;
        TestCase test(params, mode);
        const auto set = [&test](const char* port, float value) {
          if (auto found = test.bytes.find(port); found != test.bytes.end()) {
            std::memcpy(found->second.data(), &value, sizeof value);
          }
        };
        set("a_scale_inv", 2.0F);
        set("b_scale_inv", 0.25F);
        set("d_scale", 0.5F);
        test.c.algorithms.kind = plan::AlgorithmSpec::Kind::all;
        expect_exact(lt(), test);
      }
    }
  }
}

TEST_F(GpuGemm, unsupported_cases_are_refused_with_a_reason) {
  GemmParams wrong_layout = shape(48, 64, 32), odd = shape(48, 64, 33);
  odd.trans_b = true;
  struct Refusal {
    GemmParams params;
    const char* mode;
    const char* text;
  };
  std::vector<Refusal> refusals = {{shape(4, 4, 0), "fp32", "k = 0"}};
  if (has_fp8() && device_->device().sm < 100) {
    refusals.push_back({wrong_layout, "fp8_e4m3", "A B^T"});
    refusals.push_back({odd, "fp8_e4m3", "multiples of 16 bytes"});
  }
  for (const Refusal& refusal : refusals) {
    TestCase test(refusal.params, refusal.mode);
    test.outcome = test.harness.run(lt(), test.c, test.host, {}, [](const worker::RunReport&) {});
    EXPECT_EQ(test.outcome.kind, worker::Outcome::Kind::unsupported);
    EXPECT_NE(test.outcome.reason.find(refusal.text), std::string::npos) << test.outcome.reason;
  }
}

TEST_F(GpuGemm, empty_products) {
  for (const GemmParams& params : {shape(0, 4, 4), shape(4, 0, 4), shape(0, 0, 0)}) {
    TestCase for_lt(params, "bf16"), for_own(params, "bf16");
    expect_exact(lt(), for_lt);
    expect_exact(own(), for_own);
  }
  TestCase no_terms(shape(4, 4, 0), "fp32");
  expect_exact(own(), no_terms);
}

TEST_F(GpuGemm, algorithms_declare_what_they_round_early) {
  GemmParams params = shape(64, 64, 64);
  params.bias = true;
  params.epilogue = "gelu";
  params.beta = 1;
  params.in_place = true;
  const auto declared = [](Backend& backend, const GemmParams& p) {
    TestCase test(p, "bf16");
    std::vector<model::DeclaredRounding> found;
    static_cast<void>(test.harness.run(backend, test.c, test.host, {},
                                       [&](const worker::RunReport& report) { found.push_back(report.rounding); }));
    return found;
  };
  const auto from_library = declared(lt(), params), from_own = declared(own(), params);
  ASSERT_FALSE(from_library.empty());
  ASSERT_FALSE(from_own.empty());
  for (const model::DeclaredRounding& rounding : from_library) {
    EXPECT_TRUE(rounding.in_place && rounding.bias && rounding.gelu);
  }
  EXPECT_FALSE(from_own.front().bias || from_own.front().gelu) << "our own kernel rounds once, at the end";
  for (const model::DeclaredRounding& rounding : declared(lt(), shape(64, 64, 64))) {
    EXPECT_FALSE(rounding.in_place || rounding.bias || rounding.gelu);
  }
}

TEST_F(GpuGemm, classes_without_override) {
  if (std::getenv("NVIDIA_TF32_OVERRIDE") != nullptr) {
    GTEST_SKIP() << "NVIDIA_TF32_OVERRIDE is set";
  }
  const auto class_of = [](Backend& backend, const char* mode) {
    TestCase test(shape(256, 256, 64), mode);
    std::string found = "no run";
    static_cast<void>(test.harness.run(backend, test.c, test.host, {}, [&](const worker::RunReport& report) {
      found = report.observed ? model::class_name(*report.observed) : "";
    }));
    return found;
  };
  EXPECT_EQ(class_of(own(), "fp32"), "fp32");
  EXPECT_EQ(class_of(lt(), "fp32"), "fp32");
  EXPECT_EQ(class_of(lt(), "fp32_pedantic"), "fp32");
  EXPECT_EQ(class_of(lt(), "tf32"), "tf32_rne");
  EXPECT_EQ(class_of(lt(), "bf16"), "");
}

TEST_F(GpuGemm, planted_memory_faults_are_seen) {
  worker::ExecuteOptions options;
  for (const char* fault : {"write_past_end", "workspace_overrun", "input_overwritten", "race"}) {
    options.inject = fault;
    TestCase test(shape(64, 64, 64), "bf16");
    test.outcome = test.harness.run(lt(), test.c, test.host, options, [&](const worker::RunReport& report) {
      EXPECT_FALSE(report.guards_intact && report.inputs_intact && report.deterministic()) << fault;
    });
    EXPECT_EQ(test.outcome.kind, worker::Outcome::Kind::done) << test.outcome.reason;
  }
}

/// One round trip through staging memory, with sizes on both sides of every threshold.
TEST_F(GpuGemm, memory_keeps_bytes) {
  DeviceMemory& memory = own().memory();
  for (const std::size_t size : {std::size_t{1}, std::size_t{4097}, (std::size_t{1} << 20) - 1, std::size_t{1} << 20,
                                 (std::size_t{16} << 20) + 1, (std::size_t{50} << 20) + 3}) {
    std::vector<std::byte> out(size), back(size);
    for (std::size_t i = 0; i < size; ++i) {
      out[i] = static_cast<std::byte>(i * 31 >> 3);
    }
    std::byte* device = memory.allocate(size);
    memory.fill(device, 0xFF, size);
    memory.upload(device, out);
    memory.download(back, device);
    EXPECT_TRUE(out == back) << size;
    memory.release(device);
  }
}

TEST_F(GpuGemm, small_cases_are_cheap) {
  constexpr int kCases = 200;
  TestCase test(shape(64, 64, 64), "bf16");
  expect_exact(lt(), test);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCases; ++i) {
    static_cast<void>(test.harness.run(lt(), test.c, test.host, {}, [](const worker::RunReport&) {}));
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::cout << "64x64x64 bf16: " << 1e6 * taken.count() / kCases << " us per case\n";
  EXPECT_LT(taken.count() / kCases, 0.02);
}

}  // namespace
}  // namespace numcheck::kernels::test
