#include "kernels/cudnn/attention_scores.hpp"

#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "kernels/cudnn/operands.hpp"
#include "op/attention_fp8.hpp"

namespace numcheck::kernels::cudnn {
namespace {

constexpr std::int64_t kRow = 2;
constexpr std::int64_t kColumn = 3;

template <class T>
std::vector<std::byte> bytes_of(std::span<const T> values) {
  std::vector<std::byte> bytes(values.size_bytes());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// [batches, heads, length, channels] with the strides of the port.
Layout head_layout(const op::AttentionParams& p, op::Side side, std::string_view port, std::int64_t channels) {
  const op::HeadStrides at = op::memory_strides(p, side, port, channels);
  const std::int64_t length = op::longest(p, side);
  const std::int64_t batch = p.is_ragged() ? length * at.position : at.batch;
  return {{p.batches, op::heads_of(p, side), length, channels}, {batch, at.head, at.position, 1}};
}

/// One number per sequence, and per head.
Layout lengths_layout(const op::AttentionParams& p) {
  return dense_layout({p.batches, 1, 1, 1});
}
Layout per_head_layout(const op::AttentionParams& p) {
  return dense_layout({1, p.heads, 1, 1});
}

}  // namespace

AttentionScores::AttentionScores(Graph& graph, const Call& call, bool full_lengths)
    : graph_(graph),
      call_(call),
      p_(op::from_params<op::AttentionParams>(call.c->params)),
      format_(data_type(call.c->mode->first)),
      gradient_format_(data_type(op::attention_gradient(*call.c->mode))),
      scale_(&graph.scalar(core::Dtype::fp32, p_.factor())) {
  if (p_.has_lengths()) {
    q_lengths_ = &graph.port(op::port_named(call.ports, "q_lengths"), lengths_layout(p_));
    kv_lengths_ = &graph.port(op::port_named(call.ports, "kv_lengths"), lengths_layout(p_));
  } else if (full_lengths) {
    const auto all = [this](std::int64_t length) {
      const std::vector<std::int32_t> values(static_cast<std::size_t>(p_.batches), static_cast<std::int32_t>(length));
      return &graph_.auxiliary(DataType::int32, lengths_layout(p_), bytes_of<std::int32_t>(values));
    };
    q_lengths_ = all(p_.sq);
    kv_lengths_ = all(p_.sk);
  }
  if (p_.has_dropout()) {
    dropout_mask_ =
        p_.draws_mask() ? drawn_mask() : &graph.port(op::port_named(call.ports, "dropout_mask"), score_layout());
    keep_scale_ = &graph.scalar(core::Dtype::fp32, p_.keep_scale());
  }
}

AttentionScores::Tensor AttentionScores::drawn_mask() {
  const auto number = [this](std::int64_t value) {
    return &graph_.auxiliary(DataType::int64, dense_layout({1, 1, 1, 1}), bytes_of<std::int64_t>(std::span(&value, 1)));
  };
  const Tensor mask = score_tensor();
  graph_.bernoulli({.probability = 1 - p_.dropout, .seed = number(p_.rng_seed), .offset = number(0), .y = mask});
  return mask;
}

AttentionScores::Tensor AttentionScores::starts(op::Side side, std::int64_t token) {
  if (!p_.is_ragged()) {
    return nullptr;
  }
  Tensor& made = starts_[{side, token}];
  if (made == nullptr) {
    const Layout layout = dense_layout({p_.batches + 1, 1, 1, 1});
    const bool is_long = op::tokens(p_, side) * token > std::numeric_limits<std::int32_t>::max();
    std::vector<std::int64_t> elements;
    for (std::int64_t batch = 0; batch <= p_.batches; ++batch) {
      elements.push_back(op::first_token(p_, side, batch) * token);
    }
    const std::vector<std::int32_t> narrow(elements.begin(), elements.end());
    made = is_long ? &graph_.auxiliary(DataType::int64, layout, bytes_of<std::int64_t>(elements))
                   : &graph_.auxiliary(DataType::int32, layout, bytes_of<std::int32_t>(narrow));
  }
  return made;
}

AttentionScores::Tensor AttentionScores::head_port(std::string_view name, op::Side side, std::int64_t channels,
                                                   bool is_transposed) {
  const op::Port& port = op::port_named(call_.ports, name);
  const Layout layout = head_layout(p_, side, name, channels);
  return &graph_.port(port, is_transposed ? transposed(layout) : layout, starts(side, layout.strides[kRow]));
}

AttentionScores::Tensor AttentionScores::query_port(std::string_view name, std::int64_t channels) {
  return head_port(name, op::Side::queries, channels, false);
}

AttentionScores::Tensor AttentionScores::key_port(std::string_view name, std::int64_t channels) {
  return head_port(name, op::Side::keys, channels, false);
}

AttentionScores::Tensor AttentionScores::transposed_key_port(std::string_view name, std::int64_t channels) {
  return head_port(name, op::Side::keys, channels, true);
}

Layout AttentionScores::query_layout(std::string_view name, std::int64_t channels) const {
  return head_layout(p_, op::Side::queries, name, channels);
}

Layout AttentionScores::key_layout(std::string_view name, std::int64_t channels) const {
  return head_layout(p_, op::Side::keys, name, channels);
}

AttentionScores::Tensor AttentionScores::keys_again() {
  const Layout layout = head_layout(p_, op::Side::keys, "k", p_.d);
  return &graph_.intermediate(format_, layout, starts(op::Side::keys, layout.strides[kRow]));
}

AttentionScores::Tensor AttentionScores::statistics_port() {
  return row_port("lse");
}

AttentionScores::Tensor AttentionScores::row_port(std::string_view name) {
  const op::Port& port = op::port_named(call_.ports, name);
  Layout layout = row_layout();
  if (p_.is_ragged()) {
    layout.strides = {p_.heads * p_.sq, 1, p_.heads, 1};
  }
  return &graph_.port(port, layout, starts(op::Side::queries, p_.heads));
}

AttentionScores::Tensor AttentionScores::max_logit_port() {
  return row_port("max_logit");
}

AttentionScores::Tensor AttentionScores::bias_port(std::string_view name) {
  return &graph_.port(op::port_named(call_.ports, name), dense_layout({1, p_.heads, p_.sq, p_.sk}));
}

AttentionScores::Tensor AttentionScores::offset_port(std::string_view name) {
  return &graph_.port(op::port_named(call_.ports, name), per_head_layout(p_));
}

AttentionScores::Tensor AttentionScores::scalar_port(std::string_view name) {
  const auto found = scalars_.find(name);
  if (found != scalars_.end()) {
    return found->second;
  }
  const Tensor made = &graph_.port(op::port_named(call_.ports, name), dense_layout({1, 1, 1, 1}));
  return scalars_.emplace(name, made).first->second;
}

AttentionScores::Tensor AttentionScores::sink() {
  if (p_.softmax == "learnable") {
    return offset_port("softmax_offset");
  }
  if (p_.softmax == "off_by_one") {
    const std::vector<float> zeros(static_cast<std::size_t>(p_.heads), 0.0F);
    return &graph_.auxiliary(DataType::fp32, per_head_layout(p_), bytes_of<float>(zeros));
  }
  return nullptr;
}

Layout AttentionScores::score_layout() const {
  return dense_layout({p_.batches, p_.heads, p_.sq, p_.sk});
}

Layout AttentionScores::row_layout() const {
  return dense_layout({p_.batches, p_.heads, p_.sq, 1});
}

AttentionScores::Tensor AttentionScores::score_tensor(DataType type) {
  return &graph_.intermediate(type, score_layout());
}

AttentionScores::Tensor AttentionScores::row_tensor() {
  return &graph_.intermediate(DataType::fp32, row_layout());
}

AttentionScores::Tensor AttentionScores::unary(PointwiseMode mode, Tensor x, Tensor y) {
  graph_.pointwise({.mode = mode, .x = x, .y = y});
  return y;
}

AttentionScores::Tensor AttentionScores::binary(PointwiseMode mode, Tensor x, Tensor b, Tensor y) {
  graph_.pointwise({.mode = mode, .x = x, .b = b, .y = y});
  return y;
}

AttentionScores::Tensor AttentionScores::scored(Tensor products) {
  Tensor scores = products;
  if (p_.bias == "pre_scale") {
    scores = biased(scores);
  }
  scores = binary(PointwiseMode::mul, scores, scale_, score_tensor());
  if (op::has_scales(*call_.c->mode)) {
    scores = binary(PointwiseMode::mul, scores, scalar_port("q_scale_inv"), score_tensor());
    scores = binary(PointwiseMode::mul, scores, scalar_port("k_scale_inv"), score_tensor());
  }
  if (p_.softcap != 0) {
    cap_ = &graph_.scalar(core::Dtype::fp32, p_.softcap);
    before_cap_ = binary(PointwiseMode::div, scores, cap_, score_tensor());
    scores = unary(PointwiseMode::tanh_forward, before_cap_, score_tensor());
    scores = binary(PointwiseMode::mul, scores, cap_, score_tensor());
  }
  if (p_.bias == "post_scale") {
    scores = biased(scores);
  } else if (p_.bias == "alibi") {
    scores = sloped(scores);
  }
  return scores;
}

AttentionScores::Tensor AttentionScores::uncapped(Tensor gradient) {
  Tensor scaled = binary(PointwiseMode::mul, gradient, cap_, score_tensor());
  scaled = binary(PointwiseMode::tanh_backward, before_cap_, scaled, score_tensor());
  return binary(PointwiseMode::div, scaled, cap_, score_tensor());
}

AttentionScores::Tensor AttentionScores::biased(Tensor scores) {
  return binary(PointwiseMode::add, scores, bias_port("bias"), score_tensor());
}

AttentionScores::Tensor AttentionScores::index(Tensor scores, std::int64_t axis) {
  const Tensor made = score_tensor(DataType::int32);
  graph_.pointwise(
      {.mode = PointwiseMode::gen_index, .x = scores, .y = made, .precision = DataType::int32, .axis = axis});
  return made;
}

AttentionScores::Tensor AttentionScores::shifted(PointwiseMode mode, Tensor index, Tensor by) {
  const Tensor made = score_tensor(DataType::int32);
  graph_.pointwise({.mode = mode, .x = index, .b = by, .y = made, .precision = DataType::int32});
  return made;
}

AttentionScores::Tensor AttentionScores::integer(std::int64_t value) {
  return &graph_.scalar(core::Dtype::int32, static_cast<double>(value));
}

AttentionScores::Tensor AttentionScores::compared(PointwiseMode mode, Tensor x, Tensor b) {
  const Tensor made = score_tensor(DataType::boolean);
  graph_.pointwise({.mode = mode, .x = x, .b = b, .y = made, .precision = DataType::boolean});
  return made;
}

AttentionScores::Tensor AttentionScores::selected(Tensor scores, Tensor where) {
  const Tensor made = score_tensor();
  const Tensor nothing = &graph_.scalar(core::Dtype::fp32, -std::numeric_limits<double>::infinity());
  graph_.pointwise({.mode = PointwiseMode::binary_select, .x = scores, .b = nothing, .t = where, .y = made});
  return made;
}

/// - slope |row + diagonal - column|; without an absolute value where no mask leaves keys beyond the diagonal.
AttentionScores::Tensor AttentionScores::sloped(Tensor scores) {
  const bool two_sided = !p_.is_causal();
  std::vector<float> slopes;
  for (std::int64_t head = 0; head < p_.heads; ++head) {
    const auto slope = static_cast<float>(op::alibi_slope(head, p_.heads));
    slopes.push_back(two_sided ? -slope : slope);
  }
  const Tensor slope = &graph_.auxiliary(DataType::fp32, per_head_layout(p_), bytes_of<float>(slopes));
  const Tensor row = index(scores, kRow);
  Tensor distance = shifted(PointwiseMode::sub, index(scores, kColumn), row);
  if (p_.diagonal(0, 1) != 0 && (p_.has_lengths() || p_.sq != p_.sk)) {
    distance = shifted(PointwiseMode::sub, distance, kv_lengths_ == nullptr ? integer(p_.sk) : kv_lengths_);
    distance = shifted(PointwiseMode::add, distance, q_lengths_ == nullptr ? integer(p_.sq) : q_lengths_);
  }
  if (two_sided) {
    const Tensor size = score_tensor(DataType::int32);
    graph_.pointwise({.mode = PointwiseMode::abs, .x = distance, .y = size, .precision = DataType::int32});
    distance = size;
  }
  return binary(PointwiseMode::add, scores, binary(PointwiseMode::mul, distance, slope, score_tensor()),
                score_tensor());
}

AttentionScores::Tensor AttentionScores::within_lengths(Tensor scores) {
  if (q_lengths_ == nullptr) {
    return scores;
  }
  const Tensor row = index(scores, kRow);
  const Tensor column = index(scores, kColumn);
  const Tensor in_rows = compared(PointwiseMode::cmp_lt, row, q_lengths_);
  const Tensor in_columns = compared(PointwiseMode::cmp_lt, column, kv_lengths_);
  return selected(scores, compared(PointwiseMode::logical_and, in_rows, in_columns));
}

AttentionScores::Tensor AttentionScores::within_bounds(Tensor scores) {
  if (p_.is_causal()) {
    scores = bounded_right(scores, 0);
  } else if (p_.window_right >= 0) {
    scores = bounded_right(scores, p_.window_right);
  }
  return p_.window_left >= 0 ? bounded_left(scores, p_.window_left) : scores;
}

/// column <= row + diagonal + bound, where `diagonal` is 0 or keys - queries.
AttentionScores::Tensor AttentionScores::bounded_right(Tensor scores, std::int64_t bound) {
  Tensor last = index(scores, kRow);
  const Tensor column = index(scores, kColumn);
  if (p_.diagonal(0, 1) != 0) {
    last = shifted(PointwiseMode::add, last, kv_lengths_ == nullptr ? integer(p_.sk) : kv_lengths_);
    last = shifted(PointwiseMode::sub, last, q_lengths_ == nullptr ? integer(p_.sq) : q_lengths_);
  }
  if (bound != 0) {
    last = shifted(PointwiseMode::add, last, integer(bound));
  }
  return selected(scores, compared(PointwiseMode::cmp_ge, last, column));
}

/// column > row + diagonal - bound - 1. Engines know the constant part as one FP32 number, the others as integers.
AttentionScores::Tensor AttentionScores::bounded_left(Tensor scores, std::int64_t bound) {
  const Tensor row = index(scores, kRow);
  Tensor first = index(scores, kColumn);
  const bool from_corner = p_.diagonal(0, 1) == 0;
  if (from_corner || q_lengths_ == nullptr) {
    const std::int64_t diagonal = from_corner ? 0 : p_.sk - p_.sq;
    const Tensor made = score_tensor();
    first = binary(PointwiseMode::add, first,
                   &graph_.scalar(core::Dtype::fp32, static_cast<double>(bound + 1 - diagonal)), made);
  } else {
    first = shifted(PointwiseMode::add, first, integer(bound + 1));
    first = shifted(PointwiseMode::sub, first, kv_lengths_);
    first = shifted(PointwiseMode::add, first, q_lengths_);
  }
  return selected(scores, compared(PointwiseMode::cmp_gt, first, row));
}

}  // namespace numcheck::kernels::cudnn
