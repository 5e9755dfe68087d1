// Speed of the attention references, with what error models need (facts) and without, beside OpenBLAS's dgemm.
//   GFLOP/s       products that the op consists of, per second of real time
//   core_GFLOP/s  the same per second of CPU time of all threads: comparable when the machine is busy
//   of_dgemm      that, as a part of what each thread reaches now if all compute large dgemms
//   extra_MiB     most memory that was resident beyond inputs and outputs
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/parallel.hpp"
#include "core/rng.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op/field.hpp"
#include "op/mode.hpp"
#include "reference/product.hpp"
#include "reference/references.hpp"

namespace {

using namespace numcheck;

std::vector<double> numbers(std::int64_t count, std::uint32_t stream) {
  std::vector<double> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto words = core::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {stream, 0});
    out[i] = 4 * static_cast<double>(static_cast<float>(words[0]) * 0x1p-32F - 0.5F);
  }
  return out;
}

/// Of all threads, in seconds.
double cpu_time() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// A number of /proc/self/status in bytes; 0 if there is none.
double status_bytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    double kib = 0;
    if (word == key && file >> kib) {
      return kib * 1024;
    }
  }
  return 0;
}

/// The most memory that was resident since it was constructed, beyond what was then.
class PeakMemory {
 public:
  PeakMemory() {
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;  // resets VmHWM
    before_ = status_bytes("VmRSS:");
  }
  [[nodiscard]] double bytes() const { return status_bytes("VmHWM:") - before_; }

 private:
  double before_ = 0;
};

/// GFLOP/s per thread of large dgemms, one on each: threads that share a core are slower than one that has it for itself.
double dgemm_rate() {
  constexpr std::int64_t kSize = 1024;
  const std::vector<double> a = numbers(kSize * kSize, 1), b = numbers(kSize * kSize, 2);
  const auto threads = static_cast<std::size_t>(core::thread_count());
  std::vector<double> c(threads * a.size());
  const auto multiply = [&](std::size_t thread) {
    reference::multiply<double>(
        {{a.data(), kSize, false}, {b.data(), kSize, false}, kSize, kSize, kSize, c.data() + thread * a.size(), kSize});
  };
  double fastest = 1e300;
  for (int repetition = 0; repetition < 4; ++repetition) {
    const double start = cpu_time();
    core::parallel_for(threads, multiply);
    fastest = std::min(fastest, cpu_time() - start);
  }
  return 2e-9 * kSize * kSize * kSize * static_cast<double>(threads) / fastest;
}

/// Inputs of a case.
struct Problem {
  op::Params params;
  std::vector<std::vector<double>> tensors;
  op::ReferenceRequest request;

  template <class OpParams>
  Problem(const op::Op& op, OpParams p, std::int64_t length, const std::string& mask) {
    p.batches = 2;
    p.heads = 16;
    p.sq = p.sk = length;
    p.d = 128;
    p.mask = mask;
    params = op::to_params(p);
    for (const op::Port& port : op.ports(params, *op::find_mode("fp32"))) {
      if (port.role == op::Role::input) {
        tensors.push_back(numbers(port.elements(), static_cast<std::uint32_t>(tensors.size())));
        request.inputs.push_back({port.name, tensors.back().data(), port.batch, port.rows, port.cols});
      }
    }
    request.params = &params;
  }
  /// Replaces what the forward pass leaves.
  void take_forward_pass() {
    op::ReferenceRequest forward = request;
    forward.values_only = true;
    const op::Values passed = reference::attention_fwd_reference().values(forward);
    for (const op::OutputValues& output : passed.outputs) {
      const auto at = std::ranges::find(request.inputs, output.port, &op::Operand::port) - request.inputs.begin();
      std::ranges::copy(output.value.span(), tensors[static_cast<std::size_t>(at)].begin());
    }
  }
};

double bytes_of(const op::Values& values) {
  double bytes = 0;
  for (const op::OutputValues& output : values.outputs) {
    bytes += 8.0 * static_cast<double>(output.value.size()) +
             4.0 * static_cast<double>(output.magnitude.size() + output.deviation.size());
    for (const core::Buffer<float>& fact : output.row_facts) {
      bytes += 4.0 * static_cast<double>(fact.size());
    }
  }
  return bytes;
}

void measure(benchmark::State& state, const op::Op& op, const op::Reference& reference, Problem& problem, bool facts) {
  problem.request.values_only = !facts;
  const double flops = op.flops(problem.params) * 1e-9;
  double seconds = 0, extra = 0;
  for (auto _ : state) {
    const PeakMemory memory;
    const double start = cpu_time();
    const op::Values values = reference.values(problem.request);
    seconds += cpu_time() - start;
    extra = std::max(extra, memory.bytes() - bytes_of(values));
  }
  const double rate = flops * static_cast<double>(state.iterations()) / seconds;
  state.counters["GFLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["core_GFLOP/s"] = rate;
  state.counters["of_dgemm"] = rate / dgemm_rate();
  state.counters["extra_MiB"] = extra / (1 << 20);
}

void attention_forward(benchmark::State& state, const std::string& mask, bool facts) {
  Problem problem(op::attention_fwd(), op::AttentionFwdParams(), state.range(0), mask);
  measure(state, op::attention_fwd(), reference::attention_fwd_reference(), problem, facts);
}

void attention_backward(benchmark::State& state, const std::string& mask, bool facts) {
  Problem problem(op::attention_bwd(), op::AttentionBwdParams(), state.range(0), mask);
  problem.take_forward_pass();
  measure(state, op::attention_bwd(), reference::attention_bwd_reference(), problem, facts);
}

void shapes(benchmark::internal::Benchmark* entry) {
  entry->Arg(2048)->Arg(8192)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
}

}  // namespace

BENCHMARK_CAPTURE(attention_forward, values, "none", false)->Apply(shapes);
BENCHMARK_CAPTURE(attention_forward, facts, "none", true)->Apply(shapes);
BENCHMARK_CAPTURE(attention_forward, causal_values, "causal", false)->Apply(shapes);
BENCHMARK_CAPTURE(attention_forward, causal_facts, "causal", true)->Apply(shapes);
BENCHMARK_CAPTURE(attention_backward, values, "none", false)->Apply(shapes);
BENCHMARK_CAPTURE(attention_backward, facts, "none", true)->Apply(shapes);
BENCHMARK_CAPTURE(attention_backward, causal_values, "causal", false)->Apply(shapes);
BENCHMARK_CAPTURE(attention_backward, causal_facts, "causal", true)->Apply(shapes);
BENCHMARK_MAIN();
