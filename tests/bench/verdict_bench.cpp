// How fast verdicts are made, without what the device takes: elements of the main output per second of one thread's
// processor time.
//
//   OP/MODE/STAGE/SET   inputs: drawing and storing them; reference: its values and error model; comparison: judging right
//                       outputs, as the simulated device leaves them; all: one after the other, as in a run, where the
//                       comparison makes references of independent rows itself. SET: instruction set
//
// verdict_bench --benchmark_filter='layernorm_fwd/bf16/.*/avx2'
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "catalog.hpp"
#include "core/isa.hpp"
#include "core/kept_blocks.hpp"
#include "core/parallel.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/sim/sim.hpp"
#include "plan/plan.hpp"
#include "prepare/group.hpp"
#include "verdict/evaluate.hpp"
#include "worker/plain_block.hpp"

namespace {

using namespace numcheck;

struct BenchOp {
  std::string_view name, op, params;
};

/// Tensors of 2^21 elements.
constexpr std::array<BenchOp, 14> kOps{{
    {"layernorm_fwd", "layernorm_fwd", R"({"rows": 8192, "hidden": 2048})"},
    {"rmsnorm_fwd", "rmsnorm_fwd", R"({"rows": 8192, "hidden": 2048})"},
    {"softmax_fwd", "softmax_fwd", R"({"sq": 8192, "sk": 2048})"},
    {"gelu", "activation_fwd", R"({"kind": "gelu", "rows": 8192, "hidden": 2048})"},
    {"silu", "activation_fwd", R"({"kind": "silu", "rows": 8192, "hidden": 2048})"},
    {"layernorm_bwd", "layernorm_bwd", R"({"rows": 2048, "hidden": 1024})"},
    {"rmsnorm_bwd", "rmsnorm_bwd", R"({"rows": 2048, "hidden": 1024})"},
    {"softmax_bwd", "softmax_bwd", R"({"sq": 2048, "sk": 1024})"},
    {"quantize", "quantize", R"({"rows": 8192, "cols": 2048})"},
    {"dequantize", "dequantize", R"({"rows": 8192, "cols": 2048})"},
    {"rope_fwd", "rope_fwd", R"({"seq": 512, "batch": 4, "heads": 8, "dim": 128})"},
    {"dropout_fwd", "dropout_fwd", R"({"elements": 2097152})"},
    {"transpose", "transpose", R"({"rows": 2048, "cols": 1024})"},
    {"gemm", "gemm", R"({"m": 2048, "n": 1024, "k": 1024, "trans_b": true})"},
}};
constexpr std::array<std::string_view, 2> kModes = {"fp32", "bf16"};
constexpr std::array kSets = {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512};

enum class Stage { inputs, reference, comparison, all };
constexpr std::array<std::pair<std::string_view, Stage>, 4> kStages{{
    {"inputs", Stage::inputs},
    {"reference", Stage::reference},
    {"comparison", Stage::comparison},
    {"all", Stage::all},
}};

plan::Case case_of(const BenchOp& bench, std::string_view mode) {
  const std::string text =
      fmt::format(R"({{"version": 1, "name": "bench", "seed": 1, "cases": [{{"op": "{}", "mode": "{}",
                                          "backend": "sim", "params": {}}}]}})",
                  bench.op, mode, bench.params);
  return plan::parse_plan(text, "verdict_bench.json", app::vocabulary(), {}).cases.front();
}

/// A case that has run, whose stages can be repeated.
class Subject {
 public:
  explicit Subject(const plan::Case& c) : cases_({c}), device_(kernels::sim::make_backend(90, app::bindings())) {
    prepare();
    const worker::Outcome outcome =
        kernels::harness::run_case(*device_, cases_.front(), made_.cases.front().host, {.repeats = 1, .classify = true},
                                   [this](const worker::RunReport& report) { report_ = report; });
    if (outcome.kind != worker::Outcome::Kind::done || !report_.has_value()) {
      throw std::runtime_error(fmt::format("{} did not run: {}", c.id, outcome.reason));
    }
    for (const worker::HostPort& host : made_.cases.front().host) {
      outputs_.emplace_back(host.bytes.begin(), host.bytes.end());
    }
  }

  [[nodiscard]] std::int64_t elements() const {
    const std::vector<op::Port>& ports = made_.cases.front().ports;
    return std::ranges::find(ports, op::Role::output, &op::Port::role)->elements();
  }

  void prepare(prepare::References references = prepare::References::whole) {
    constexpr double kFlopsLimit = 1.5e12;  // PipelineOptions::reference_flops_limit
    made_ = prepare::prepare_group(
        cases_, {.key = {}, .cases = {0}}, app::catalog(), kFlopsLimit,
        [](std::size_t bytes, worker::BlockUse) { return std::make_shared<worker::PlainBlock>(bytes); }, references);
  }

  void compute_reference() {
    prepare::compute_references(*made_.group, [](const auto& body) { body(); });
  }

  void leave_outputs() {
    const std::vector<worker::HostPort>& ports = made_.cases.front().host;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (worker::use_of(*ports[i].port) == worker::BlockUse::output) {
        std::ranges::copy(outputs_[i], ports[i].bytes.begin());
      }
    }
  }

  void judge() {
    verdict::ComparisonCache cache;
    verdict::EvaluationContext context;
    context.group = made_.group.get();
    context.prepared = &made_.cases.front();
    context.host = made_.cases.front().host;
    context.device = &device_->device();
    context.arithmetic = prepare::arithmetic_of(*made_.group->row, report_->backend);
    context.cache = &cache;
    double seconds = 0;
    const verdict::RunResult result = verdict::evaluate_run(context, *report_, seconds);
    if (result.status != verdict::Status::pass) {
      throw std::runtime_error(fmt::format("{}: {}", cases_.front().id, result.failing));
    }
  }

 private:
  std::vector<plan::Case> cases_;
  std::unique_ptr<kernels::Backend> device_;
  prepare::PreparedGroup made_;
  std::optional<worker::RunReport> report_;
  std::vector<std::vector<std::byte>> outputs_;  ///< parallel to the ports
};

/// The subject of the benchmarks that run now; each has run on all threads when it is first asked for.
Subject& subject_of(const BenchOp& bench, std::string_view mode) {
  static std::string name;
  static std::unique_ptr<Subject> subject;
  if (const std::string wanted = fmt::format("{}/{}", bench.name, mode); name != wanted) {
    static const int all_threads = core::thread_count();
    core::set_thread_count(all_threads);
    subject = nullptr;
    subject = std::make_unique<Subject>(case_of(bench, mode));
    name = wanted;
  }
  core::set_thread_count(1);
  return *subject;
}

void measure(benchmark::State& state, const BenchOp& bench, std::string_view mode, Stage stage, core::Isa isa) {
  Subject& subject = subject_of(bench, mode);
  core::force_isa(isa);
  if (stage == Stage::comparison) {
    subject.prepare();
    subject.compute_reference();
    subject.leave_outputs();
  }
  const bool all = stage == Stage::all;
  const auto untimed = [&state](const auto& body) {
    state.PauseTiming();
    body();
    state.ResumeTiming();
  };
  for (auto _ : state) {
    if (stage == Stage::inputs || all) {
      subject.prepare(all ? prepare::References::of_rows_if_possible : prepare::References::whole);
    }
    if (stage == Stage::reference) {
      untimed([&] { subject.prepare(); });
    }
    if (stage == Stage::reference) {
      subject.compute_reference();
    }
    if (all) {
      subject.compute_reference();  // not of rows that do not know of each other
      untimed([&] { subject.leave_outputs(); });
    }
    if (stage == Stage::comparison || all) {
      subject.judge();
    }
  }
  state.SetItemsProcessed(state.iterations() * subject.elements());
}

void register_all() {
  for (const BenchOp& bench : kOps) {
    for (const std::string_view mode : kModes) {
      for (const core::Isa isa : kSets) {
        for (const auto& [word, stage] : kStages) {
          if (!core::is_supported(isa)) {
            continue;
          }
          const std::string name = fmt::format("{}/{}/{}/{}", bench.name, mode, word, core::isa_name(isa));
          benchmark::RegisterBenchmark(name.c_str(), [&bench, mode, stage = stage, isa](benchmark::State& state) {
            measure(state, bench, mode, stage, isa);
          })->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::size_t kKept = std::size_t{4} << 30;  // as in a run
  const core::KeptBlocks kept(kKept);
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
