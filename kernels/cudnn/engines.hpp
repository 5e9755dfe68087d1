// From a finalised operation graph to execution plans: what cuDNN's heuristics offer, in words and ready to run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cudnn/graph.hpp"
#include "plan/case.hpp"

namespace numcheck::kernels::cudnn {

/// What plans are made for: a device by its context, or one that is not here by its properties.
struct Target {
  ContextHandle handle = nullptr;
  const Descriptor* device = nullptr;  ///< Kind::device_properties
};

/// An engine with its knobs, as cuDNN's heuristics propose it.
struct Candidate {
  Descriptor config;
  HeuristicsMode mode;
};

/// "cudnn engine 7" and the configuration in pairs: engine, knobs, numerical notes, behaviour, heuristics.
struct EngineText {
  std::string label;
  std::vector<std::pair<std::string, std::string>> details;
};

/// Candidates of one heuristics mode, best first, at most 64; where there are none, cuDNN's reason is in `refusal`.
struct Candidates {
  std::vector<Candidate> list;
  std::string refusal;
};

[[nodiscard]] Candidates candidates(const Graph& graph, const Target& target, HeuristicsMode mode);

[[nodiscard]] EngineText describe(const Candidate& candidate);

/// The finalised plan of a candidate. Throws CudnnError; a refusal says why this engine does not take the graph.
[[nodiscard]] Descriptor make_plan(const Graph& graph, const Target& target, const Candidate& candidate);

struct Plan {
  Descriptor descriptor;
  EngineText text;
  std::size_t workspace_bytes = 0;
};

/// The first `most` plans that finalise, of heuristics A and then of the fallback, each engine with the same knobs
/// once. Empty where every engine refuses; `refusal` then is the reason of the first one. Throws CudnnError if anything
/// fails otherwise.
struct Plans {
  std::vector<Plan> list;
  std::string refusal;
};

[[nodiscard]] Plans make_plans(const Graph& graph, const Target& target, std::size_t most);

/// How many plans a case asks for: one, its first N, or all (at most 64).
[[nodiscard]] std::size_t requested_count(const plan::AlgorithmSpec& spec);

}  // namespace numcheck::kernels::cudnn
