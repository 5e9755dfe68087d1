// Speed of the GEMM reference against the linked BLAS's own multi-threaded dgemm, paired: every iteration runs both,
// one after the other, so that a busy machine slows both. Counters: GFLOP/s of each and
// reference / BLAS, from the medians.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/buffer.hpp"
#include "core/parallel.hpp"
#include "core/rng.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "reference/matmul.hpp"
#include "reference/references.hpp"

extern "C" {
void openblas_set_num_threads(int threads);
void dgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc);
}

namespace {

using numcheck::core::Buffer;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Buffer<double> random_matrix(std::size_t size, std::uint32_t stream) {
  Buffer<double> out(size);
  numcheck::core::parallel_chunks(size, 1U << 16, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto words = numcheck::core::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {stream, 0});
      out[i] = static_cast<float>(words[0]) * 0x1p-32F - 0.5F;
    }
  });
  return out;
}

/// D = A B of square matrices, ready for the reference.
struct Problem {
  explicit Problem(int size)
      : a(random_matrix(static_cast<std::size_t>(size) * static_cast<std::size_t>(size), 1)),
        b(random_matrix(a.size(), 2)),
        params(numcheck::op::to_params(numcheck::op::GemmParams{.m = size, .n = size, .k = size})),
        request{.params = &params,
                .inputs = {{.port = "a", .data = a.data(), .rows = size, .cols = size},
                           {.port = "b", .data = b.data(), .rows = size, .cols = size}},
                .sample = {}} {}

  Buffer<double> a;
  Buffer<double> b;
  numcheck::op::Params params;
  numcheck::op::ReferenceRequest request;
};

void blas_product(int size, const double* a, const double* b, double* c) {
  const double one = 1;
  const double zero = 0;
  openblas_set_num_threads(numcheck::core::thread_count());
  dgemm_("N", "N", &size, &size, &size, &one, a, &size, b, &size, &zero, c, &size);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// OpenBLAS' idle threads spin for some 0.1 s after a multi-threaded call; the reference never makes one, so here they
// must have gone to sleep before its turn.
constexpr std::chrono::milliseconds kSpinTime{300};

void yardsticks(benchmark::State& state) {
  const Problem problem(static_cast<int>(state.range(0)));
  const auto reference = numcheck::reference::gemm_reference();
  for (auto _ : state) {
    benchmark::DoNotOptimize(reference.yardsticks(problem.request).outputs[0].magnitude.data());
  }
}

void reference_against_blas(benchmark::State& state) {
  const auto size = static_cast<int>(state.range(0));
  const Problem problem(size);
  Buffer<double> c = random_matrix(problem.a.size(), 3);
  const auto reference = numcheck::reference::gemm_reference();
  std::vector<double> blas_s;
  std::vector<double> reference_s;
  for (auto _ : state) {
    auto start = std::chrono::steady_clock::now();
    blas_product(size, problem.a.data(), problem.b.data(), c.data());
    blas_s.push_back(seconds_since(start));
    std::this_thread::sleep_for(kSpinTime);
    start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(reference.values(problem.request).outputs[0].value.data());
    reference_s.push_back(seconds_since(start));
  }
  const double flops = 2.0 * size * size * size;
  const double blas = median(blas_s);
  const double own = median(reference_s);
  state.SetLabel(std::string(numcheck::reference::matmul_implementation()) + ", " +
                 std::to_string(numcheck::core::thread_count()) + " threads");
  state.counters["blas_gflops"] = flops * 1e-9 / blas;
  state.counters["reference_gflops"] = flops * 1e-9 / own;
  state.counters["reference/blas"] = blas / own;
}

BENCHMARK(reference_against_blas)
    ->Arg(1024)
    ->Arg(2048)
    ->Arg(4096)
    ->Iterations(9)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(yardsticks)->Arg(1024)->Arg(2048)->Arg(4096)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
