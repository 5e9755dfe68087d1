#include "diagnose/crop_attention.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "diagnose/attention_reading.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::diagnose {
namespace {

using op::AttentionParams;
using op::HeadPlace;
using op::Side;

/// One sequence, and which of its heads.
struct Part {
  std::int64_t batch = 0;
  std::vector<std::int64_t> heads, key_heads;
};

bool has_heads(std::string_view port) {
  return is_of_keys(port) || is_of_values(port) || port == "q" || port == "dq";
}

bool is_statistic(std::string_view port) {
  return port == "lse" || port == "max_logit";
}

Side side_of(std::string_view port) {
  return is_of_keys(port) ? Side::keys : Side::queries;
}

/// Where the numbers of a head are in a tensor of heads, or of statistics, and how many belong to each position.
struct Run {
  HeadPlace place;
  std::int64_t positions = 0, channels = 1;
};

Run run_of(const AttentionParams& p, std::string_view port, std::int64_t batch, std::int64_t head) {
  if (is_statistic(port)) {
    return {op::statistic_place(p, batch, head), p.sq, 1};
  }
  const std::int64_t channels = is_of_values(port) ? p.value_channels() : p.d;
  return {op::head_place(p, side_of(port), batch, head, channels), op::longest(p, side_of(port)), channels};
}

/// Source of each element of the part's tensor; empty if the whole is taken as it is.
std::vector<std::size_t> sources(const AttentionParams& p, const AttentionParams& smaller, const Part& part,
                                 std::string_view port) {
  const std::vector<std::int64_t>& heads = is_of_keys(port) ? part.key_heads : part.heads;
  std::vector<std::size_t> from;
  const auto add_block = [&](std::int64_t first, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      from.push_back(static_cast<std::size_t>(first + i));
    }
  };
  if (has_heads(port) || is_statistic(port)) {
    const Run size = run_of(smaller, port, 0, 0);
    from.resize(heads.size() * static_cast<std::size_t>(size.positions * size.channels));
    for (std::size_t h = 0; h < heads.size(); ++h) {
      const Run to = run_of(smaller, port, 0, static_cast<std::int64_t>(h)), of = run_of(p, port, part.batch, heads[h]);
      for (std::int64_t i = 0; i < to.positions; ++i) {
        for (std::int64_t c = 0; c < to.channels; ++c) {
          from[static_cast<std::size_t>(to.place.first + i * to.place.stride + c)] =
              static_cast<std::size_t>(of.place.first + i * of.place.stride + c);
        }
      }
    }
  } else if (port == "bias" || port == "softmax_offset" || port == "dropout_mask") {
    const std::int64_t size = port == "softmax_offset" ? 1 : p.sq * p.sk;
    for (const std::int64_t head : heads) {
      add_block((port == "dropout_mask" ? part.batch * p.heads + head : head) * size, size);
    }
  } else if (port == "q_lengths" || port == "kv_lengths") {
    add_block(part.batch, 1);
  }
  return from;
}

/// How many elements of each head of each sequence are wrong.
std::vector<std::int64_t> wrong_by_head(const AttentionParams& p, std::string_view output,
                                        std::span<const std::uint8_t> is_wrong) {
  const std::int64_t heads = is_of_keys(output) ? p.key_heads() : p.heads;
  std::vector<std::int64_t> wrong(static_cast<std::size_t>(p.batches * heads));
  for (std::size_t n = 0; n < wrong.size(); ++n) {
    const Run run = run_of(p, output, static_cast<std::int64_t>(n) / heads, static_cast<std::int64_t>(n) % heads);
    for (std::int64_t i = 0; i < run.positions; ++i) {
      for (std::int64_t c = 0; c < run.channels; ++c) {
        wrong[n] += is_wrong[static_cast<std::size_t>(run.place.first + i * run.place.stride + c)];
      }
    }
  }
  return wrong;
}

/// The sequence and heads with most of the wrong elements.
Part worst_part(const AttentionParams& p, std::string_view output, std::span<const std::uint8_t> is_wrong) {
  const std::int64_t heads = is_of_keys(output) ? p.key_heads() : p.heads;
  const std::vector<std::int64_t> wrong = wrong_by_head(p, output, is_wrong);
  const std::int64_t worst = std::ranges::max_element(wrong) - wrong.begin();
  Part part{.batch = worst / heads, .heads = {}, .key_heads = {}};
  part.heads.resize(static_cast<std::size_t>(p.heads));
  std::iota(part.heads.begin(), part.heads.end(), 0);
  part.key_heads.resize(static_cast<std::size_t>(p.key_heads()));
  std::iota(part.key_heads.begin(), part.key_heads.end(), 0);
  // ALiBi's slopes depend on how many heads there are.
  if (p.key_heads() == p.heads && p.heads > 2 && p.bias != "alibi") {
    part.heads = {worst % heads, (worst % heads + heads / 2) % heads};
    std::ranges::sort(part.heads);
    part.key_heads = part.heads;
  }
  return part;
}

/// Parameters of attention that can be cropped for the sake of that output.
std::optional<AttentionParams> parameters_of(const Subject& subject, std::string_view output,
                                             std::span<const std::uint8_t> is_wrong) {
  const plan::Case& c = subject.c;
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  const op::Port* of = op::find_port(ports, output);
  const bool is_attention = c.op->name == "attention_fwd" || c.op->name == "attention_bwd";
  if (!is_attention || of == nullptr || !(has_heads(output) || is_statistic(output)) ||
      std::cmp_not_equal(is_wrong.size(), of->elements()) || !op::passes_of(*c.op, c.params).empty()) {
    return std::nullopt;
  }
  const auto p = op::from_params<AttentionParams>(c.params);
  return p.is_ragged() || p.packing != "none" ? std::nullopt : std::optional(p);
}

/// A copy of the elements of `whole` at those places.
std::shared_ptr<core::Buffer<std::byte>> picked(const core::Buffer<std::byte>& whole,
                                                const std::vector<std::size_t>& from, std::size_t width) {
  auto bytes = std::make_shared<core::Buffer<std::byte>>(from.size() * width);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::copy_n(whole.data() + from[i] * width, width, bytes->data() + i * width);
  }
  return bytes;
}

Subject part_of(const Subject& subject, const AttentionParams& p, const Part& part) {
  AttentionParams smaller = p;
  smaller.batches = 1;
  smaller.heads = std::ssize(part.heads);
  smaller.kv_heads = p.kv_heads == 0 ? 0 : std::ssize(part.key_heads);
  Subject result = subject;
  result.outputs.clear();
  result.c.params = op::to_params(smaller);
  for (const op::Port& port : subject.c.op->ports(subject.c.params, *subject.c.mode)) {
    const std::vector<std::size_t> from = sources(p, smaller, part, port.name);
    const auto given = subject.outputs.find(port.name);
    if (from.empty()) {
      continue;  // scales are those of the whole; sums over sequences and maxima are of the whole only
    }
    if (port.role == op::Role::output && given != subject.outputs.end()) {
      const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
      result.outputs.emplace(port.name, picked(*given->second, from, width));
    } else if (port.role == op::Role::input && subject.inputs.has(port)) {
      const prepare::SharedDoubles whole = subject.inputs.of(port);
      auto values = std::make_shared<core::Buffer<double>>(from.size());
      for (std::size_t i = 0; i < from.size(); ++i) {
        (*values)[i] = (*whole)[from[i]];
      }
      result.inputs.set(std::string(port.name), std::move(values));
    }
  }
  return result;
}

}  // namespace

std::optional<Subject> cropped_attention(const Subject& subject, std::string_view output,
                                         std::span<const std::uint8_t> is_wrong) {
  const std::optional<AttentionParams> p = parameters_of(subject, output, is_wrong);
  if (!p.has_value()) {
    return std::nullopt;
  }
  const Part part = worst_part(*p, output, is_wrong);
  if (std::ssize(part.heads) == p->heads && p->batches == 1) {
    return std::nullopt;
  }
  return part_of(subject, *p, part);
}

std::optional<WrongHead> only_wrong_head(const Subject& subject, std::string_view output,
                                         std::span<const std::uint8_t> is_wrong) {
  constexpr std::int64_t kFewest = 16;
  const std::optional<AttentionParams> p = parameters_of(subject, output, is_wrong);
  if (!p.has_value() || p->bias == "alibi" || p->batches * p->heads < 2 ||
      (is_of_keys(output) && p->key_heads() != p->heads)) {
    return std::nullopt;
  }
  const std::vector<std::int64_t> wrong = wrong_by_head(*p, output, is_wrong);
  const auto worst = std::ranges::max_element(wrong);
  if (*worst < kFewest || std::ranges::count_if(wrong, [](std::int64_t n) { return n > 0; }) != 1) {
    return std::nullopt;
  }
  const std::int64_t index = worst - wrong.begin(), head = index % p->heads;
  const Part part{.batch = index / p->heads, .heads = {head}, .key_heads = {head / (p->heads / p->key_heads())}};
  return WrongHead{part_of(subject, *p, part), fmt::format("head {} of sequence {}", head, part.batch)};
}

}  // namespace numcheck::diagnose
