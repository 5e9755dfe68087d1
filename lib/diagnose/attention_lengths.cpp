#include "diagnose/attention_lengths.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "core/error.hpp"
#include "op/attention_layout.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {
namespace {

core::Buffer<double> numbers_of(std::string_view port, const data::FileTensor& tensor) {
  constexpr std::size_t kMost = std::size_t{1} << 16;
  if (tensor.elements() > kMost) {
    throw Misfit{fmt::format("{} has {} lengths, and at most {} are read", port, tensor.elements(), kMost)};
  }
  return data::values_of(tensor);
}

/// Whether numbers say where sequences begin: from 0 to a token, and no lengths of all tokens, which would add up to them. (One
/// sequence of all tokens after empty ones is both, and the same.)
bool are_starts(std::span<const double> given, double tokens) {
  return given.size() > 1 && given.front() == 0 && given.back() <= tokens &&
         (std::reduce(given.begin(), given.end()) != tokens || given.back() == tokens);
}

void require_rising(std::string_view port, std::span<const double> starts) {
  const auto falls = std::ranges::adjacent_find(starts, [](double one, double next) { return !(next >= one); });
  if (falls != starts.end()) {
    throw Misfit{fmt::format("{}, which says where sequences begin, falls from {} to {} at [{}]", port, falls[0],
                             falls[1], falls - starts.begin() + 1)};
  }
}

std::vector<std::int64_t> differences(std::span<const double> starts) {
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 1; i < starts.size(); ++i) {
    lengths.push_back(static_cast<std::int64_t>(starts[i] - starts[i - 1]));
  }
  return lengths;
}

/// The numbers as they are.
std::vector<std::int64_t> as_lengths(std::string_view port, std::span<const double> given, std::int64_t most) {
  std::vector<std::int64_t> lengths;
  for (const double length : given) {
    if (!(length >= 0 && length <= static_cast<double>(most))) {
      throw Misfit{fmt::format("{} has {}, where {} positions are", port, length, most)};
    }
    lengths.push_back(static_cast<std::int64_t>(length));
  }
  return lengths;
}

void require_within(std::string_view port, std::span<const std::int64_t> lengths, std::int64_t positions) {
  for (const std::int64_t length : lengths) {
    if (length > positions) {
      throw Misfit{fmt::format("{} has a sequence of {}, where {} positions are", port, length, positions)};
    }
  }
}

}  // namespace

SequenceLengths lengths_of_tokens(std::string_view port, const data::FileTensor& tensor, std::int64_t tokens) {
  const core::Buffer<double> given = numbers_of(port, tensor);
  if (are_starts(given.span(), static_cast<double>(tokens))) {
    require_rising(port, given.span());
    return {differences(given.span()), tokens - static_cast<std::int64_t>(given.span().back())};
  }
  std::vector<std::int64_t> lengths = as_lengths(port, given.span(), tokens);
  const std::int64_t sum = std::reduce(lengths.begin(), lengths.end());
  if (sum != tokens) {
    throw Misfit{
        fmt::format("{} has {} tokens, and the lengths add up to {}", port == "q_lengths" ? "q" : "k", tokens, sum)};
  }
  return {std::move(lengths), 0};
}

SequenceLengths lengths_of_rows(std::string_view port, const data::FileTensor& tensor, std::int64_t sequences,
                                std::int64_t positions) {
  const core::Buffer<double> given = numbers_of(port, tensor);
  if (!std::cmp_equal(given.size(), sequences + 1) || given[0] != 0) {
    return {as_lengths(port, given.span(), positions), 0};
  }
  require_rising(port, given.span());
  std::vector<std::int64_t> lengths = differences(given.span());
  require_within(port, lengths, positions);
  return {std::move(lengths), 0};
}

void require_lengths_that_fit(const Subject& subject) {
  const plan::Case& c = subject.c;
  if (!c.op->name.starts_with("attention_") || !op::from_params<op::AttentionParams>(c.params).has_lengths()) {
    return;
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  for (const auto& [name, side] :
       {std::pair{"q_lengths", op::Side::queries}, std::pair{"kv_lengths", op::Side::keys}}) {
    const op::Port* const port = op::find_port(ports, name);
    if (port == nullptr || !subject.inputs.has(*port)) {
      continue;
    }
    const prepare::SharedDoubles given = subject.inputs.of(*port);
    const std::int64_t rows = side == op::Side::queries ? p.sq : p.sk;
    for (std::size_t batch = 0; batch < given->size(); ++batch) {
      const double length = (*given)[batch];
      const std::int64_t made = op::sequence_length(p, side, static_cast<std::int64_t>(batch));
      if (!(length >= 0 && length <= static_cast<double>(rows))) {
        throw core::UsageError(fmt::format("{} has {} at [{}], where {} positions are", name, length, batch, rows));
      }
      if (p.is_ragged() && length != static_cast<double>(made)) {
        throw core::UsageError(
            fmt::format("{} has {} at [{}], where the parameters of these tensors make the sequence {} long", name,
                        length, batch, made));
      }
    }
  }
}

std::string padding_note(const Subject& subject) {
  const plan::Case& c = subject.c;
  if (c.op->name != "attention_fwd") {
    return "";
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  const op::Port* const port = op::find_port(ports, "q_lengths");
  if (p.is_ragged() || port == nullptr || !subject.inputs.has(*port)) {
    return "";
  }
  const prepare::SharedDoubles given = subject.inputs.of(*port);
  const bool is_short =
      std::ranges::any_of(given->span(), [&p](double length) { return length < static_cast<double>(p.sq); });
  return is_short
             ? "o and lse of queries beyond q_lengths are padding, of which libraries make what they like: they are "
               "not judged"
             : "";
}

}  // namespace numcheck::diagnose
