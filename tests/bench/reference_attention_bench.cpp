// Speed of the attention reference: seconds, and GFLOP/s of its two products.
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "core/rng.hpp"
#include "op/attention_fwd.hpp"
#include "op/field.hpp"
#include "op/mode.hpp"
#include "reference/references.hpp"

namespace {

using numcheck::op::AttentionFwdParams;

std::vector<double> numbers(std::int64_t count, std::uint32_t stream) {
  std::vector<double> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto words = numcheck::core::philox4x32({static_cast<std::uint32_t>(i), 0, 0, 0}, {stream, 0});
    out[i] = 4 * static_cast<double>(static_cast<float>(words[0]) * 0x1p-32F - 0.5F);
  }
  return out;
}

void attention_forward(benchmark::State& state, const std::string& mask) {
  AttentionFwdParams p;
  p.batches = 2;
  p.heads = 16;
  p.sq = p.sk = state.range(0);
  p.d = 128;
  p.mask = mask;
  const numcheck::op::Params params = numcheck::op::to_params(p);
  const numcheck::op::Op& op = numcheck::op::attention_fwd();
  std::vector<std::vector<double>> tensors;
  numcheck::op::ReferenceRequest request{.params = &params, .inputs = {}, .sample = {}, .values_only = true};
  for (const numcheck::op::Port& port : op.ports(params, *numcheck::op::find_mode("fp32"))) {
    if (port.role == numcheck::op::Role::input) {
      tensors.push_back(numbers(port.elements(), static_cast<std::uint32_t>(tensors.size())));
      request.inputs.push_back({port.name, tensors.back().data(), port.batch, port.rows, port.cols});
    }
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(numcheck::reference::attention_fwd_reference().values(request));
  }
  state.counters["GFLOP/s"] =
      benchmark::Counter(op.flops(params) * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

BENCHMARK_CAPTURE(attention_forward, none, "none")->Arg(1024)->Arg(2048)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(attention_forward, causal, "causal")->Arg(2048)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_MAIN();
