// Throughput of the comparison: compare_bench [rows [set]], where set is baseline, avx2 or avx512 (default: all). CPU time
// of one thread, best of nine.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "core/buffer.hpp"
#include "core/codec.hpp"
#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "metric/compare.hpp"

namespace {

using namespace numcheck;

double cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Data {
  core::Buffer<double> expected, unrounded;
  core::Buffer<float> magnitude, deviation;
};

Data make_data(std::size_t count) {
  Data data{core::Buffer<double>(count), core::Buffer<double>(count), core::Buffer<float>(count),
            core::Buffer<float>(count)};
  std::mt19937_64 engine(1);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < count; ++i) {
    data.expected[i] = 64 * normal(engine);
    data.unrounded[i] = data.expected[i] * (1 + 1e-3 * normal(engine));
    data.magnitude[i] = 2600;
    data.deviation[i] = 64;
  }
  return data;
}

void measure(const Data& data, core::Dtype dtype, std::int64_t rows, core::Isa isa, bool total) {
  op::Port port;
  port.dtype = dtype;
  port.rows = port.cols = port.ld = rows;
  port.batch_stride = rows * rows;
  std::vector<std::byte> got(port.extent_bytes());
  core::encode(data.expected.span(), dtype, got);
  model::ErrorModel model;
  model.bound_magnitude = 1e-4;
  model.var_second = 1e-11;
  model.var_coherent = 1e-9;
  model.terms = true;
  metric::CompareInput input;
  input.port = &port;
  input.got = got;
  input.expected = data.expected.span();
  input.magnitude = data.magnitude.span();
  input.deviation = data.deviation.span();
  input.model = &model;
  if (total) {
    input.unrounded = data.unrounded.span();
  }
  core::force_isa(isa);
  double best = 1e9;
  for (int repeat = 0; repeat < 9; ++repeat) {
    const double start = cpu_s();
    const metric::Statistics statistics = metric::compare(input);
    best = statistics.elements == data.expected.size() ? std::min(best, cpu_s() - start) : best;
  }
  std::printf("%-5s %-9s %-12s %6.0f M elements/s per core\n", core::dtype_info(dtype).name.data(),
              core::isa_name(isa).data(), total ? "both errors" : "arithmetic",
              1e-6 * static_cast<double>(rows * rows) / best);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t rows = argc > 1 ? std::max(1L, std::strtol(argv[1], nullptr, 10)) : 2048;
  core::set_thread_count(1);
  const Data data = make_data(static_cast<std::size_t>(rows * rows));
  for (const core::Dtype dtype : {core::Dtype::bf16, core::Dtype::fp32}) {
    for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
      if (core::is_supported(isa) && (argc < 3 || core::isa_name(isa) == argv[2])) {
        measure(data, dtype, rows, isa, false);
        measure(data, dtype, rows, isa, true);
      }
    }
  }
  return 0;
}
