// The softmax of attention's forward graphs.
#pragma once

#include "kernels/cudnn/attention_scores.hpp"

namespace numcheck::kernels::cudnn {

/// exp(scores - lse) after dropout, in the given format; stores the statistics. See attention_graph.
AttentionScores::Tensor softmax_graph(Graph& graph, AttentionScores& s, AttentionScores::Tensor scores,
                                      DataType format);

}  // namespace numcheck::kernels::cudnn
