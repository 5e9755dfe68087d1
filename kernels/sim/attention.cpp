#include "kernels/sim/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/codec.hpp"
#include "kernels/sim/gemm.hpp"
#include "kernels/sim/tensor_io.hpp"
#include "model/expected_class.hpp"
#include "model/product.hpp"
#include "op/attention_fp8.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float rounded(float x, core::Dtype format) {
  return static_cast<float>(core::round_to(static_cast<double>(x), format));
}

/// A port that this case may not have.
std::vector<float> read_if_there(std::span<const PortMemory> ports, std::string_view name) {
  return find_port(ports, name) == nullptr ? std::vector<float>() : read_floats(ports, name);
}

bool all_finite(std::span<const float> row) {
  return std::ranges::all_of(row, [](float x) { return std::isfinite(x); });
}

op::AttentionParams with_fault(const AttentionKernel& kernel) {
  op::AttentionParams p = kernel.p;
  if (kernel.has("top_left_mask")) {
    p.mask = p.has_lengths() ? "padding_causal" : "causal";
  }
  if (kernel.has("window_too_wide")) {
    p.window_left += p.window_left >= 0 ? 1 : 0;
    p.window_right += p.window_right >= 0 ? 1 : 0;
  }
  return p;
}

}  // namespace

std::string sim_attention_obstacle(const Call& call, const SimContext& context) {
  return sim_gemm_obstacle(*call.c->mode, context.sm);
}

AttentionKernel::AttentionKernel(const Call& call, const SimContext& context)
    : p(op::from_params<op::AttentionParams>(call.c->params)), format(call.c->mode->first), fault(call.inject) {
  const bool tf32 = has("tf32_silently") ||
                    model::expected_class(*call.c->mode, context.tf32_override) == model::PrecisionClass::tf32_rne;
  operands = tf32 ? core::Dtype::tf32 : format;
  gradients = op::attention_gradient(*call.c->mode);
  schedule = model::gemm_schedule(context.sm, *call.c->mode, false, tf32);
}

float AttentionKernel::operand(float x, core::Dtype format) {
  return format == core::Dtype::fp32 ? x : rounded(x, format);
}

std::vector<float> AttentionKernel::product(std::span<const float> a, std::span<const float> b, std::int64_t m,
                                            std::int64_t n, std::int64_t k, core::Dtype first,
                                            core::Dtype second) const {
  std::vector<float> sums(static_cast<std::size_t>(m * n));
  model::ProductOperands matrices{a, b, m, n, k};
  matrices.a_emin = core::dtype_info(first).emin;
  matrices.b_emin = core::dtype_info(second).emin;
  model::simulate_product(schedule, matrices, sums);
  return sums;
}

float AttentionKernel::scale() const {
  return has("softmax_scale_missing") ? 1.0F
         : has("scale_by_d")          ? 1.0F / static_cast<float>(p.d)
                                      : static_cast<float>(p.factor());
}

HeadMatrix HeadMatrix::transposed() const {
  HeadMatrix out{channels, rows, std::vector<float>(at.size())};
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) {
      out.at[static_cast<std::size_t>(c * rows + i)] = at[static_cast<std::size_t>(i * channels + c)];
    }
  }
  return out;
}

HeadMatrix HeadMatrix::rows_of(std::int64_t begin, std::int64_t end) const {
  return {end - begin, channels, std::vector<float>(at.begin() + begin * channels, at.begin() + end * channels)};
}

AttentionTensors::AttentionTensors(const AttentionKernel& kernel, std::span<const PortMemory> ports)
    : kernel_(kernel),
      masked_(with_fault(kernel)),
      scales_(kernel, ports),
      q_(read_floats(ports, "q")),
      k_(read_floats(ports, "k")),
      v_(read_floats(ports, "v")),
      bias_(read_if_there(ports, "bias")),
      offset_(read_if_there(ports, "softmax_offset")),
      q_lengths_(read_if_there(ports, "q_lengths")),
      kv_lengths_(read_if_there(ports, "kv_lengths")),
      mask_(read_if_there(ports, "dropout_mask")) {}

HeadMatrix AttentionTensors::head_of(std::span<const float> tensor, op::Side side, std::int64_t batch,
                                     std::int64_t head, std::int64_t channels, core::Dtype operands) const {
  const op::HeadPlace place = op::head_place(kernel_.p, side, batch, head, channels);
  const std::int64_t length = op::longest(kernel_.p, side);
  HeadMatrix out{length, channels, {}};
  out.at.reserve(static_cast<std::size_t>(length * channels));
  const auto elements = static_cast<std::int64_t>(tensor.size());
  for (std::int64_t i = 0; i < length && place.first + i * place.stride + channels <= elements; ++i) {
    const float* row = tensor.data() + place.first + i * place.stride;
    std::transform(row, row + channels, std::back_inserter(out.at),
                   [operands](float x) { return AttentionKernel::operand(x, operands); });
  }
  out.at.resize(static_cast<std::size_t>(length * channels), 0.0F);
  return out;
}

void AttentionTensors::put_head(const HeadMatrix& from, op::Side side, std::int64_t batch, std::int64_t head,
                                std::span<float> tensor) const {
  const op::HeadPlace place = op::head_place(kernel_.p, side, batch, head, from.channels);
  for (std::int64_t i = 0; i < op::positions(kernel_.p, side, batch); ++i) {
    std::ranges::copy(from.row(i), tensor.data() + place.first + i * place.stride);
  }
}

HeadMatrix AttentionTensors::queries(std::int64_t batch, std::int64_t head) const {
  return head_of(q_, op::Side::queries, batch, head, kernel_.p.d, kernel_.operands);
}

HeadMatrix AttentionTensors::keys(std::int64_t batch, std::int64_t key_head) const {
  return head_of(k_, op::Side::keys, batch, key_head, kernel_.p.d, kernel_.operands);
}

HeadMatrix AttentionTensors::values(std::int64_t batch, std::int64_t key_head) const {
  HeadMatrix v = head_of(v_, op::Side::keys, batch, key_head, kernel_.p.value_channels(), kernel_.operands);
  if (!kernel_.has("values_transposed")) {
    return v;
  }
  const std::int64_t rows = v.rows;
  v = v.transposed();
  std::swap(v.rows, v.channels);  // the numbers of the transpose, read as if they were not
  v.rows = rows;
  return v;
}

std::int64_t AttentionTensors::key_head(std::int64_t head) const noexcept {
  const op::AttentionParams& p = kernel_.p;
  return kernel_.has("head_map_rotated") ? head % p.key_heads() : head / (p.heads / p.key_heads());
}

std::int64_t AttentionTensors::query_count(std::int64_t batch) const {
  return q_lengths_.empty() ? kernel_.p.sq : static_cast<std::int64_t>(q_lengths_[static_cast<std::size_t>(batch)]);
}

std::int64_t AttentionTensors::key_count(std::int64_t batch) const {
  return kv_lengths_.empty() ? kernel_.p.sk : static_cast<std::int64_t>(kv_lengths_[static_cast<std::size_t>(batch)]);
}

op::KeyRange AttentionTensors::seen(std::int64_t batch, std::int64_t i) const {
  const std::int64_t keys = key_count(batch);
  op::KeyRange range = masked_.visible(i, query_count(batch), keys);
  if (kernel_.has("mask_off_by_one")) {
    range.end = std::min(range.end + 1, keys);
  } else if (kernel_.has("padding_attended") && range.end == keys) {
    range.end = kernel_.p.sk;
  } else if (kernel_.has("key_tile_dropped")) {
    range.end = std::min(range.end, (kernel_.p.sk - 1) / kKeysOfTile * kKeysOfTile);
    range.begin = std::min(range.begin, range.end);
  }
  return range;
}

float AttentionTensors::score(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j, float product,
                              float* slope) const {
  const op::AttentionParams& p = kernel_.p;
  const float scale = kernel_.scale() * (scales_.q * scales_.k);
  const float bias = bias_.empty() ? 0.0F : bias_[static_cast<std::size_t>((head * p.sq + i) * p.sk + j)];
  const bool before = p.bias == "pre_scale" && !kernel_.has("bias_after_scale");
  float s = before ? (product + bias) * scale : product * scale;
  if (p.softcap != 0 && !kernel_.has("softcap_missing")) {
    const auto cap = static_cast<float>(p.softcap);
    const float t = std::tanh(s / cap);
    s = cap * t;
    if (slope != nullptr && !kernel_.has("softcap_slope_missing")) {
      *slope = 1 - t * t;
    }
  }
  if (!before) {
    s += bias;
  }
  if (p.bias == "alibi") {
    const std::int64_t of = kernel_.has("neighbour_slope") ? (head + 1) % p.heads : head;
    const std::int64_t distance = i + p.diagonal(query_count(batch), key_count(batch)) - j;
    s -= static_cast<float>(op::alibi_slope(of, p.heads)) * static_cast<float>(std::abs(distance));
  }
  return kernel_.has("rounded_scores") ? rounded(s, kernel_.format) : s;
}

float AttentionTensors::kept(std::int64_t batch, std::int64_t head, std::int64_t i, std::int64_t j) const {
  const op::AttentionParams& p = kernel_.p;
  if (mask_.empty()) {
    return 1;
  }
  const std::int64_t column = kernel_.has("dropout_mask_shifted") ? (j + 1) % p.sk : j;
  const float mask = mask_[static_cast<std::size_t>(((batch * p.heads + head) * p.sq + i) * p.sk + column)];
  return kernel_.has("dropout_scale_missing") ? mask : mask * static_cast<float>(p.keep_scale());
}

float AttentionTensors::sink(std::int64_t head) const {
  const std::string& kind = kernel_.p.softmax;
  if (kind == "vanilla" || kernel_.has("sink_missing")) {
    return -kInfinity;
  }
  return kind == "off_by_one" ? 0.0F : offset_[static_cast<std::size_t>(head)];
}

void AttentionTensors::add_weighed(const Place& at, std::span<const float> weights, core::Dtype format,
                                   const HeadMatrix& values, HeadMatrix& sum) const {
  HeadMatrix finite = values;
  std::vector<std::int64_t> others;
  for (std::int64_t j = 0; j < values.rows; ++j) {
    if (!all_finite(values.row(j)) && !kernel_.has("masked_values_leak")) {
      std::fill_n(finite.at.begin() + j * values.channels, values.channels, 0.0F);
      others.push_back(j);
    }
  }
  const std::vector<float> added =
      kernel_.product(weights, finite.at, sum.rows, sum.channels, values.rows, format, kernel_.operands);
  std::ranges::transform(sum.at, added, sum.at.begin(), std::plus<>());
  for (std::int64_t i = 0; i < sum.rows && !others.empty(); ++i) {
    const std::int64_t query = at.query + i;
    const op::KeyRange range = query < query_count(at.batch) ? seen(at.batch, query) : op::KeyRange();
    for (const std::int64_t j : others) {
      if (at.key + j >= range.begin && at.key + j < range.end) {
        const float weight = weights[static_cast<std::size_t>(i * values.rows + j)];
        for (std::int64_t c = 0; c < sum.channels; ++c) {
          sum.at[static_cast<std::size_t>(i * sum.channels + c)] += weight * values.row(j)[static_cast<std::size_t>(c)];
        }
      }
    }
  }
}

}  // namespace numcheck::kernels::sim
