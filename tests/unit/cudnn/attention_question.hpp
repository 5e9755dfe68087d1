// Whether cuDNN has an engine for a case of attention.
#pragma once

#include <memory>

#include "attention_problem.hpp"
#include "kernels/cudnn/attention_graph.hpp"
#include "kernels/cudnn/engines.hpp"
#include "tests/unit/attention/gate_tally.hpp"

namespace numcheck::kernels::cudnn::test {

/// Of all forms of the graph; the words are those about the first.
inline numcheck::test::Reply ask(const Library& library, const Target& target, const Problem& problem) {
  numcheck::test::Reply reply;
  for (const AttentionForm form : attention_forms(problem.call(), library.get_version())) {
    try {
      const std::shared_ptr<Graph> graph = attention_graph(library, problem.call(), form);
      graph->finalize(target.handle);
      const Candidates offered = candidates(*graph, target, HeuristicsMode::a);
      reply.accepted = reply.accepted || !offered.list.empty();
      reply.words = reply.words.empty() ? offered.refusal : reply.words;
    } catch (const CudnnError& error) {
      if (!error.is_refusal()) {
        throw;
      }
      reply.words = reply.words.empty() ? error.reason() : reply.words;
    }
  }
  return reply;
}

}  // namespace numcheck::kernels::cudnn::test
