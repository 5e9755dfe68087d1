#include "explain_attention.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "eligibility/attention_gates.hpp"
#include "model/arithmetic.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fp8.hpp"
#include "op/attention_fwd.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::app {
namespace {

using eligibility::Answer;
using eligibility::Circumstances;
using eligibility::Refusal;
using eligibility::Selector;
using eligibility::TeChoice;
using report::views::Cell;

/// A case, and where it is to run.
struct Question {
  op::AttentionParams params;
  const op::Mode* mode = nullptr;
  bool backward = false;
  int sm = 0;
  std::int64_t cudnn = 0;

  [[nodiscard]] Circumstances circumstances(bool training, bool deterministic) const {
    return {.storage = mode->first,
            .training = training,
            .backward = backward,
            .deterministic = deterministic,
            .sm = sm,
            .cudnn = cudnn};
  }
  [[nodiscard]] std::vector<Refusal> ask(std::initializer_list<Selector> selectors, const Circumstances& c) const {
    std::vector<Refusal> all;
    for (const Selector selector : selectors) {
      std::ranges::move(eligibility::refusals(selector, params, c), std::back_inserter(all));
    }
    return all;
  }
};

/// What fails for one pass on one of our backends. TransformerEngine's deterministic backward pass is the one that runs; a forward
/// pass that training lacks is run as that of inference.
std::vector<Refusal> pass_refusals(const Question& question, std::string_view backend) {
  if (backend == "cudnn") {
    return question.ask({Selector::cudnn}, question.circumstances(question.backward, question.backward));
  }
  if (backend != "transformer_engine") {
    return {};  // they compute every case that a plan can have, but for FP8
  }
  const auto ask = [&question](bool training) {
    return question.ask({Selector::fused_interface, Selector::fused_case, Selector::fused_kernels},
                        question.circumstances(training, question.backward));
  };
  std::vector<Refusal> training = ask(true);
  return !question.backward && ask(false).empty() ? std::vector<Refusal>() : training;
}

/// What fails for a backend: in a case that runs both passes, for either.
std::vector<Refusal> backend_refusals(const Question& question, std::string_view backend) {
  std::vector<Refusal> all = pass_refusals(question, backend);
  if (question.params.runs_forward()) {
    Question forward = question;
    forward.backward = false;
    for (Refusal& refusal : pass_refusals(forward, backend)) {
      if (std::ranges::find(all, refusal.gate, &Refusal::gate) == all.end()) {
        all.push_back(std::move(refusal));
      }
    }
  }
  return all;
}

/// Why a backend has no part of the case, whatever the gates say; empty if it does.
std::string missing_part(const Question& question, std::string_view backend) {
  if (op::has_scales(*question.mode) && (backend == "cuda" || backend == "unfused")) {
    return "it has no FP8";
  }
  if (backend == "sim") {
    return model::gemm_obstacle(question.sm, *question.mode);
  }
  if (question.params.draws_mask() && backend == "unfused") {
    return "it draws no dropout mask: dropout_mask must be given";
  }
  if (question.params.draws_mask() && question.params.bias == "alibi" &&
      (backend == "cudnn" || backend == "transformer_engine")) {
    return "with alibi, the mask that it draws cannot be read back";
  }
  return question.params.runs_forward() && backend == "unfused" ? "its backward pass reads no lse" : "";
}

/// Whether a backend takes the case. Gates that only documents have leave that to the library.
std::string taken_word(const std::vector<Refusal>& refusals) {
  if (refusals.empty()) {
    return "yes";
  }
  const auto leaves_it_open = [](const Refusal& refusal) { return refusal.gate->answer == Answer::documented_only; };
  return std::ranges::all_of(refusals, leaves_it_open) ? "asked" : "no";
}

std::string backends_table(const Question& question, const prepare::CatalogRow& row, bool colour) {
  std::vector<std::vector<Cell>> rows;
  for (const std::string_view backend : prepare::backend_names(row)) {
    std::string first(backend);
    if (const std::string missing = missing_part(question, backend); !missing.empty()) {
      rows.push_back({{first}, {"no"}, {missing}, {"-"}});
      continue;
    }
    const std::vector<Refusal> found = backend_refusals(question, backend);
    std::string taken = taken_word(found);
    if (found.empty()) {
      rows.push_back({{first}, {taken}, {"-"}, {"-"}});
    }
    for (const Refusal& refusal : found) {
      rows.push_back(
          {{std::exchange(first, "")}, {std::exchange(taken, "")}, {refusal.sentence}, {refusal.gate->source}});
    }
  }
  return report::views::render_table({{"backend"}, {"taken"}, {"gate that fails"}, {"source"}}, rows, 0, colour);
}

/// Products of the unfused path, and what they are rounded to. Forward q k^T and p v; the backward pass has p^T do,
/// do v^T, ds k and ds^T q.
std::string unfused_text(const Question& question) {
  const int products = question.backward ? 4 : 2;
  const core::Dtype storage = question.mode->first;
  if (op::has_scales(*question.mode)) {
    return "UnfusedDotProductAttention taken with NVTE_UnfusedDPA_Emulate_FP8=1 only, which emulates FP8";
  }
  if (storage != core::Dtype::fp32) {
    return fmt::format("UnfusedDotProductAttention taken: {} products, with the scores rounded to {} in between",
                       products, core::dtype_info(storage).name);
  }
  return question.sm < 80 ? fmt::format("UnfusedDotProductAttention taken: {} FP32 products", products)
                          : fmt::format(
                                "UnfusedDotProductAttention taken: {} TF32-capable products: "
                                "torch.backends.cuda.matmul.allow_tf32 and NVIDIA_TF32_OVERRIDE decide",
                                products);
}

/// What TransformerEngine's PyTorch layer takes, in the order in which it looks: "FusedAttention refused (...); ...".
std::string landing(const Question& question, const Circumstances& circumstances) {
  std::string text;
  for (const TeChoice choice : eligibility::te_order(question.params, circumstances)) {
    if (choice == TeChoice::unfused) {
      const std::vector<Refusal> found = question.ask({Selector::unfused}, circumstances);
      return text + (found.empty() ? unfused_text(question)
                                   : fmt::format("UnfusedDotProductAttention refused ({}): the layer ends in an error",
                                                 found.front().sentence));
    }
    const bool fused = choice == TeChoice::fused;
    const std::vector<Refusal> found =
        fused ? question.ask({Selector::fused_interface, Selector::fused_layer, Selector::fused_kernels}, circumstances)
              : question.ask({Selector::flash}, circumstances);
    if (!found.empty()) {
      text += fmt::format("{} ({}); ", fused ? "FusedAttention refused" : "FlashAttention not applicable",
                          found.front().sentence);
    } else if (fused) {
      return text + "FusedAttention taken: cuDNN's kernels";
    } else {
      text += "FlashAttention taken if flash-attn is installed and has no limit of its own (not checked); without it: ";
    }
  }
  return text + "nothing";
}

std::string landings(const Question& question) {
  struct Setting {
    std::string_view name;
    bool training;
    bool deterministic;
  };
  std::vector<Setting> settings = {{"in training", true, false}};
  if (!question.backward) {
    settings.push_back({"in inference", false, false});
  }
  settings.push_back({"in training with NVTE_ALLOW_NONDETERMINISTIC_ALGO=0", true, true});
  std::string text;
  std::string before;
  for (const Setting& setting : settings) {
    std::string found = landing(question, question.circumstances(setting.training, setting.deterministic));
    text += fmt::format("  {}: {}\n", setting.name, found == before ? "the same" : found);
    before = std::move(found);
  }
  return text;
}

}  // namespace

AttentionSite attention_site(const ExecutionOptions& options, const std::string& cudnn) {
  const std::string asked = std::ranges::count(cudnn, '.') == 1 ? cudnn + ".0" : cudnn;
  AttentionSite site{.device = {}, .sm = 0, .cudnn = asked, .cudnn_assumed = false};
  if (!asked.empty() && eligibility::cudnn_number(asked) == 0) {
    throw core::UsageError(fmt::format("--cudnn: \"{}\" is not a version such as 9.10.2", cudnn));
  }
  const run::PipelineOptions pipeline = pipeline_options(options);
  const std::unique_ptr<worker::Executor> executor = pipeline.workers.factory(pipeline.workers.device);
  site.device = executor->device().name;
  site.sm = executor->device().sm;
  for (const auto& [name, version] : executor->libraries()) {
    const std::string number = version.substr(0, version.find(' '));
    if (name == "cudnn" && site.cudnn.empty() && eligibility::cudnn_number(number) != 0) {
      site.cudnn = number;
    }
  }
  if (site.cudnn.empty()) {
    site.cudnn = eligibility::attention_gates().cudnn;
    site.cudnn_assumed = true;
  }
  return site;
}

bool is_attention(const op::Op& op) {
  return &op == &op::attention_fwd() || &op == &op::attention_bwd();
}

std::string explain_attention(const plan::Case& c, const prepare::CatalogRow& row, const AttentionSite& site,
                              bool colour) {
  const Question question{.params = op::from_params<op::AttentionParams>(c.params),
                          .mode = c.mode,
                          .backward = c.op == &op::attention_bwd(),
                          .sm = site.sm,
                          .cudnn = eligibility::cudnn_number(site.cudnn)};
  return fmt::format(
      "who takes it on sm_{} ({}), with cuDNN {}{} and the gates of TransformerEngine {}:\n{}"
      "yes: no gate fails; asked: documents exclude it, but the library is asked\n\n"
      "what a user of TransformerEngine's PyTorch layer lands on:\n{}",
      site.sm, site.device, site.cudnn, site.cudnn_assumed ? " (assumed)" : "",
      eligibility::attention_gates().transformer_engine, backends_table(question, row, colour), landings(question));
}

}  // namespace numcheck::app
