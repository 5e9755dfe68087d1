#include "mini_run.hpp"

#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "kernels/sim/bindings.hpp"
#include "kernels/sim/sim.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"
#include "prepare/group.hpp"
#include "reference/references.hpp"
#include "tolerance/attention_bwd_model.hpp"
#include "tolerance/attention_model.hpp"
#include "tolerance/gemm_model.hpp"
#include "tolerance/grouped_gemm_model.hpp"
#include "verdict/evaluate.hpp"
#include "worker/plain_block.hpp"

namespace numcheck::detect {
namespace {

prepare::Catalog catalog() {
  static const std::vector<prepare::CatalogRow> rows = {
      {&op::gemm(), reference::gemm_reference(), &tolerance::gemm_error_model, {{.name = "sim"}}},
      {&op::grouped_gemm(),
       reference::grouped_gemm_reference(),
       &tolerance::grouped_gemm_error_model,
       {{.name = "sim"}}},
      {&op::attention_fwd(),
       reference::attention_fwd_reference(),
       &tolerance::attention_error_model,
       {{.name = "sim"}}},
      {&op::attention_bwd(),
       reference::attention_bwd_reference(),
       &tolerance::attention_bwd_error_model,
       {{.name = "sim"}}}};
  return rows;
}

}  // namespace

MiniResult MiniRunner::run(const plan::Case& c, int sm, const worker::ExecuteOptions& options,
                           const std::optional<model::DeclaredRounding>& rounding,
                           const std::function<void(std::span<const worker::HostPort>)>& tamper) {
  std::unique_ptr<kernels::Backend>& backend = backends_[sm];
  if (backend == nullptr) {
    static const std::array<const kernels::Binding*, 4> bindings = {
        &kernels::sim::gemm(), &kernels::sim::grouped_gemm(), &kernels::sim::attention_fwd(),
        &kernels::sim::attention_bwd()};
    backend = kernels::sim::make_backend(sm, bindings);
  }
  constexpr double kNoLimit = 1e18;
  const std::vector<plan::Case> cases = {c};
  const auto allocate = [](std::size_t bytes, worker::BlockUse) { return std::make_shared<worker::PlainBlock>(bytes); };
  const prepare::PreparedGroup made =
      prepare::prepare_group(cases, {.key = {}, .cases = {0}}, catalog(), kNoLimit, allocate);
  prepare::compute_references(*made.group, [](const auto& body) { body(); });
  verdict::ComparisonCache cache;
  verdict::EvaluationContext context;
  context.group = made.group.get();
  context.prepared = &made.cases.front();
  context.host = made.cases.front().host;
  context.device = &backend->device();
  context.cache = &cache;
  MiniResult result;
  double seconds = 0;
  result.outcome =
      harness_.run(*backend, cases.front(), made.cases.front().host, options, [&](worker::RunReport report) {
        report.rounding = rounding.value_or(report.rounding);
        if (tamper) {
          tamper(made.cases.front().host);
        }
        result.runs.push_back(verdict::evaluate_run(context, report, seconds));
      });
  return result;
}

const tolerance::Criterion* first_failing(const verdict::RunResult& run) {
  for (const verdict::OutputResult& output : run.outputs) {
    for (const tolerance::Criterion& criterion : output.criteria) {
      if (!criterion.ok) {
        return &criterion;
      }
    }
  }
  return nullptr;
}

std::string describe_failure(const plan::Case& c, const verdict::RunResult& run) {
  std::string text = fmt::format("{} seed {}: {}", c.id, c.seed, run.run.label);
  for (const verdict::OutputResult& output : run.outputs) {
    for (const tolerance::Criterion& criterion : output.criteria) {
      if (!criterion.ok) {
        text += fmt::format("\n    {}: {} {:.6g} > {:.6g}", output.port, criterion.name, criterion.measured,
                            criterion.limit);
      }
    }
    const metric::Statistics& s = output.statistics;
    text += fmt::format(
        "\n    {}: N {} e/B {:.3g} z rms {:.3g} max {:.3g} slope {:.3g} se {:.3g} coherence {:.3g} R "
        "{:.4g} R0 {:.4g} element {:.3g}; {}",
        output.port, s.elements, s.max_over_bound, s.z_rms, s.z_max, s.slope, s.slope_se, s.coherence, s.rounding_ratio,
        s.rounding_ratio_perfect, s.max_over_half_ulp, output.model_source);
    for (const op::Finding& finding : output.findings) {
      text += fmt::format("\n    {}: {}: {}", output.port, finding.name, finding.text);
    }
    for (const metric::Worst& worst : s.worst) {
      text += fmt::format("\n      [{}] got {:.9g} (0x{:x}) expected {:.17g} e/B {:.3g}", worst.index, worst.got,
                          worst.got_bits, worst.expected, worst.over_bound);
    }
  }
  return text;
}

}  // namespace numcheck::detect
