// From a finalised operation graph to execution plans: what cuDNN's heuristics offer, as text and ready to run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cudnn/graph.hpp"
#include "plan/case.hpp"

namespace numcheck::kernels::cudnn {

/// What plans are made for: a present device, given by its context, or an absent one, given by its properties.
struct Target {
  ContextHandle handle = nullptr;
  const Descriptor* device = nullptr;  ///< Kind::device_properties
};

/// An engine with its knobs, as cuDNN's heuristics propose it.
struct Candidate {
  Descriptor config;
  HeuristicsMode mode;
};

/// "cudnn engine 7" and the configuration as pairs: engine, knobs, numerical notes, behaviour, heuristics.
struct EngineText {
  std::string label;
  std::vector<std::pair<std::string, std::string>> details;
  bool nondeterministic = false;  ///< the engine says that repeated runs may differ
};

/// Candidates of one heuristics mode, best first, at most 64; if there are none, `refusal` is cuDNN's reason.
struct Candidates {
  std::vector<Candidate> list;
  std::string refusal;
};

[[nodiscard]] Candidates candidates(const Graph& graph, const Target& target, HeuristicsMode mode);

[[nodiscard]] EngineText describe(const Candidate& candidate);

/// The finalised plan of a candidate. Throws CudnnError; a refusal says why this engine does not support the graph.
[[nodiscard]] Descriptor make_plan(const Graph& graph, const Target& target, const Candidate& candidate);

struct Plan {
  Descriptor descriptor;
  EngineText text;
  std::size_t workspace_bytes = 0;
};

/// Which engines plans are made of.
enum class Engines { all, deterministic };

/// The first `limit` plans that finalise, from heuristics A and then from the fallback, each engine once with the same
/// knobs. Empty if every engine refuses; `refusal` is then the reason of the first one. Throws CudnnError on any other
/// failure.
struct Plans {
  std::vector<Plan> list;
  std::string refusal;
};

[[nodiscard]] Plans make_plans(const Graph& graph, const Target& target, std::size_t limit,
                               Engines engines = Engines::all);

/// How many plans a case asks for: one, its first N, or all (at most 64).
[[nodiscard]] std::size_t requested_count(const plan::AlgorithmSpec& spec);

}  // namespace numcheck::kernels::cudnn
