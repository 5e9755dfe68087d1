#include "kernels/cudnn/attention_softmax.hpp"

namespace numcheck::kernels::cudnn {

AttentionScores::Tensor softmax_graph(Graph& graph, AttentionScores& s, AttentionScores::Tensor scores,
                                      DataType format) {
  using Tensor = AttentionScores::Tensor;
  const Tensor sink = s.sink();
  Tensor maximum = s.params().max_logit ? s.max_logit_port() : s.row_tensor();
  graph.reduce(ReduceOperator::max, *scores, *maximum);
  if (sink != nullptr) {
    maximum = s.binary(PointwiseMode::max, maximum, sink, s.row_tensor());
  }
  const Tensor difference = s.binary(PointwiseMode::sub, scores, maximum, s.score_tensor());
  const Tensor exponentials = s.unary(PointwiseMode::exp, difference, s.score_tensor());
  Tensor sum = s.row_tensor();
  if (sink == nullptr) {
    graph.reduce(ReduceOperator::add, *exponentials, *sum);
  } else {
    const Tensor lowered = s.binary(PointwiseMode::sub, sink, maximum, s.row_tensor());
    const Tensor beside = s.unary(PointwiseMode::exp, lowered, s.row_tensor());
    const Tensor of_keys = s.row_tensor();
    graph.reduce(ReduceOperator::add, *exponentials, *of_keys);
    s.binary(PointwiseMode::add, of_keys, beside, sum);
  }
  const Tensor logarithm = s.unary(PointwiseMode::log, sum, s.row_tensor());
  s.binary(PointwiseMode::add, maximum, logarithm, s.statistics_port());
  if (s.dropout_mask() == nullptr) {
    return s.binary(PointwiseMode::div, exponentials, sum, s.score_tensor(format));
  }
  const Tensor weights = s.binary(PointwiseMode::div, exponentials, sum, s.score_tensor());
  // Engines know a mask that is drawn before the scale, and one that is given after it.
  const Tensor first = s.params().draws_mask() ? s.dropout_mask() : s.keep_scale();
  const Tensor second = s.params().draws_mask() ? s.keep_scale() : s.dropout_mask();
  const Tensor half = s.binary(PointwiseMode::mul, weights, first, s.score_tensor());
  return s.binary(PointwiseMode::mul, half, second, s.score_tensor(format));
}

}  // namespace numcheck::kernels::cudnn
