#include "kernels/cudnn/engines.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"

namespace numcheck::kernels::cudnn {
namespace {

constexpr std::size_t kMaxCandidates = 64;
constexpr std::size_t kMaxKnobs = 64;
constexpr std::size_t kMaxNotes = 32;
constexpr std::size_t kKnobsDetail = 1;  ///< position of the knobs in EngineText::details

/// cudnnBackendNumericalNote_t and cudnnBackendBehaviorNote_t, in the order of their numbers.
constexpr std::array<std::string_view, 10> kNumericalNotes = {"tensor_core",
                                                              "down_convert_inputs",
                                                              "reduced_precision_reduction",
                                                              "fft",
                                                              "nondeterministic",
                                                              "winograd",
                                                              "winograd_tile_4x4",
                                                              "winograd_tile_6x6",
                                                              "winograd_tile_13x13",
                                                              "strict_nan_propagation"};
constexpr std::array<std::string_view, 5> kBehaviorNotes = {"runtime_compilation", "int8x32_filter_reorder",
                                                            "int8x32_bias_reorder", "cuda_graph", "cublaslt"};

struct Named {
  int value;
  std::string_view name;
};

/// Knobs of the engines for normalisations and attention (cudnnBackendKnobType_t).
constexpr std::array kKnobs = {
    Named{2, "tile_size"},  Named{14, "stages"},        Named{15, "reduction_mode"}, Named{24, "kernel_cfg"},
    Named{25, "workspace"}, Named{27, "tile_cga_m"},    Named{28, "tile_cga_n"},     Named{29, "block_size"},
    Named{30, "occupancy"}, Named{31, "array_size"},    Named{33, "split_cols"},     Named{34, "tile_rows"},
    Named{35, "tile_cols"}, Named{36, "load_size"},     Named{37, "cta_count"},      Named{40, "tile_m"},
    Named{41, "tile_n"},    Named{42, "warp_spec_cfg"},
};

std::string knob_name(KnobType type) {
  const auto found = std::ranges::find(kKnobs, static_cast<int>(type), &Named::value);
  return found == kKnobs.end() ? fmt::format("#{}", static_cast<int>(type)) : std::string(found->name);
}

/// Names of the notes; "none" if there are none, "unknown" if the engine does not report them.
template <class Note, class Names>
std::string notes_text(const Descriptor& engine, Attribute attribute, const Names& names) try {
  std::vector<std::string> words;
  for (const Note note : engine.values<Note>(attribute, kMaxNotes)) {
    const auto index = static_cast<std::size_t>(note);
    words.push_back(index < names.size() ? std::string(names[index]) : fmt::format("#{}", index));
  }
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, " "));
} catch (const CudnnError&) {
  return "unknown";
}

bool has_note(const Descriptor& engine, NumericalNote note) try {
  const std::vector<NumericalNote> notes = engine.values<NumericalNote>(Attribute::engine_numerical_notes, kMaxNotes);
  return std::ranges::find(notes, note) != notes.end();
} catch (const CudnnError&) {
  return false;
}

std::string knobs_text(const Descriptor& config) try {
  std::vector<std::string> words;
  for (const Descriptor& knob : config.descriptors(Attribute::config_knobs, Kind::knob_choice, kMaxKnobs)) {
    words.push_back(fmt::format("{}={}", knob_name(knob.value<KnobType>(Attribute::knob_type)),
                                knob.value<std::int64_t>(Attribute::knob_value)));
  }
  return words.empty() ? "none" : fmt::format("{}", fmt::join(words, " "));
} catch (const CudnnError&) {
  return "unknown";
}

bool has_text(const std::vector<Plan>& plans, const EngineText& text) {
  return std::ranges::any_of(plans, [&text](const Plan& plan) {
    return plan.text.label == text.label && plan.text.details[kKnobsDetail] == text.details[kKnobsDetail];
  });
}

/// Adds plans of one heuristics mode that are not in the list yet, up to `limit`; keeps the first refusal.
void add_plans(const Graph& graph, const Target& target, HeuristicsMode mode, std::size_t limit, Engines engines,
               Plans& plans) {
  const Candidates offered = candidates(graph, target, mode);
  const auto note = [&plans](const std::string& refusal) {
    if (plans.refusal.empty()) {
      plans.refusal = refusal;
    }
  };
  note(offered.refusal);
  for (const Candidate& candidate : offered.list) {
    if (plans.list.size() == limit) {
      return;
    }
    EngineText text = describe(candidate);
    if (has_text(plans.list, text)) {
      continue;
    }
    if (engines == Engines::deterministic && text.nondeterministic) {
      note(fmt::format("{} is not deterministic", text.label));
      continue;
    }
    try {
      Descriptor plan = make_plan(graph, target, candidate);
      const auto bytes = static_cast<std::size_t>(plan.value<std::int64_t>(Attribute::plan_workspace_bytes));
      plans.list.push_back({std::move(plan), std::move(text), bytes});
    } catch (const CudnnError& error) {
      if (!error.is_refusal()) {
        throw;
      }
      note(error.reason());
    }
  }
}

}  // namespace

Candidates candidates(const Graph& graph, const Target& target, HeuristicsMode mode) try {
  Descriptor heuristics(graph.library(), Kind::heuristics);
  heuristics.set(Attribute::heuristics_graph, graph.descriptor());
  heuristics.set(Attribute::heuristics_mode, mode);
  if (target.device != nullptr) {
    heuristics.set(Attribute::heuristics_device, *target.device);
  }
  heuristics.finalize();
  Candidates found;
  for (Descriptor& config :
       heuristics.descriptors(Attribute::heuristics_results, Kind::engine_config, kMaxCandidates)) {
    found.list.push_back({std::move(config), mode});
  }
  if (found.list.empty()) {
    found.refusal = graph.library().last_complaint();
  }
  return found;
} catch (const CudnnError& error) {
  if (!error.is_refusal()) {
    throw;
  }
  return {{}, error.reason()};
}

EngineText describe(const Candidate& candidate) {
  const std::vector<Descriptor> engines = candidate.config.descriptors(Attribute::config_engine, Kind::engine, 1);
  if (engines.empty()) {
    throw core::InternalError("cuDNN binding: an engine configuration without an engine");
  }
  const Descriptor& engine = engines.front();
  const std::string id = std::to_string(engine.value<std::int64_t>(Attribute::engine_id));
  return {"cudnn engine " + id,
          {{"engine", id},
           {"knobs", knobs_text(candidate.config)},
           {"numerical_notes", notes_text<NumericalNote>(engine, Attribute::engine_numerical_notes, kNumericalNotes)},
           {"behavior", notes_text<BehaviorNote>(engine, Attribute::engine_behavior_notes, kBehaviorNotes)},
           {"heuristics", candidate.mode == HeuristicsMode::a ? "A" : "fallback"}},
          has_note(engine, NumericalNote::nondeterministic)};
}

Descriptor make_plan(const Graph& graph, const Target& target, const Candidate& candidate) {
  Descriptor plan(graph.library(), Kind::execution_plan);
  if (target.handle != nullptr) {
    plan.set(Attribute::plan_handle, target.handle);
  }
  if (target.device != nullptr) {
    plan.set(Attribute::plan_device, *target.device);
  }
  plan.set(Attribute::plan_config, candidate.config);
  plan.finalize();
  return plan;
}

Plans make_plans(const Graph& graph, const Target& target, std::size_t limit, Engines engines) {
  Plans plans;
  add_plans(graph, target, HeuristicsMode::a, limit, engines, plans);
  if (plans.list.size() < limit) {
    add_plans(graph, target, HeuristicsMode::fallback, limit, engines, plans);
  }
  if (plans.list.empty() && plans.refusal.empty()) {
    plans.refusal = "its heuristics propose none";
  }
  return plans;
}

std::size_t requested_count(const plan::AlgorithmSpec& spec) {
  switch (spec.kind) {
    case plan::AlgorithmSpec::Kind::heuristic:
      return 1;
    case plan::AlgorithmSpec::Kind::top:
      return static_cast<std::size_t>(std::clamp<std::int64_t>(spec.top, 1, kMaxCandidates));
    case plan::AlgorithmSpec::Kind::all:
      break;
  }
  return kMaxCandidates;
}

}  // namespace numcheck::kernels::cudnn
