// Where the elements of a reading are, and how tensors are moved into the order of the case's ports.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "diagnose/attention_reading.hpp"

namespace numcheck::diagnose {
namespace {

/// A tensor of the same elements in another order: element i of the result is number source(i) of the row-major tensor, or
/// zero if that is negative.
template <class Source>
data::FileTensor moved(const data::FileTensor& tensor, std::vector<std::int64_t> shape, const Source& source,
                       std::vector<core::Buffer<std::byte>>& storage) {
  constexpr std::uint64_t kByte = 8;
  if (tensor.element_bits == 0 || tensor.element_bits % kByte != 0) {
    throw core::UsageError(tensor.name + " has elements that share bytes: " + tensor.format + " is not read here");
  }
  data::FileTensor result = tensor;
  result.shape = std::move(shape);
  result.column_major = false;
  const std::vector<std::byte> dense = data::dense_bytes(tensor);
  const std::size_t element = tensor.element_bits / kByte;
  core::Buffer<std::byte>& bytes = storage.emplace_back(result.elements() * element);
  std::ranges::fill(bytes.span(), std::byte{0});
  for (std::size_t i = 0; i < result.elements(); ++i) {
    if (const std::int64_t from = source(static_cast<std::int64_t>(i)); from >= 0) {
      std::memcpy(bytes.data() + i * element, dense.data() + static_cast<std::size_t>(from) * element, element);
    }
  }
  result.bytes = bytes.span();
  return result;
}

/// thd: sequences of `width` elements per token in rows of the longest one.
data::FileTensor in_rows(const AttentionReading& reading, const NamedTensor& named,
                         std::vector<core::Buffer<std::byte>>& storage) {
  const op::AttentionParams& p = reading.p;
  const bool key = is_of_keys(named.port);
  const std::int64_t length = key ? p.sk : p.sq;
  const std::int64_t width = (key ? p.kv_heads : p.heads) * (is_of_values(named.port) ? p.dv : p.d);
  const std::vector<std::int64_t>& lengths = key ? reading.kv_lengths : reading.q_lengths;
  const std::vector<std::int64_t> first = reading.first_tokens(key);
  const auto source = [&](std::int64_t i) {
    const auto batch = static_cast<std::size_t>(i / width / length);
    const std::int64_t position = i / width % length;
    return position >= lengths[batch] ? -1 : (first[batch] + position) * width + i % width;
  };
  return moved(named.tensor, {p.batches, length, width}, source, storage);
}

data::FileTensor statistic_by_heads(const AttentionReading& reading, const NamedTensor& named,
                                    std::vector<core::Buffer<std::byte>>& storage) {
  const op::AttentionParams& p = reading.p;
  const bool is_ragged = reading.layout == "thd";
  const std::int64_t tokens = is_ragged ? static_cast<std::int64_t>(named.tensor.elements()) / p.heads : 0;
  const std::vector<std::int64_t> first = reading.first_tokens(false);
  const auto source = [&](std::int64_t i) {
    const std::int64_t batch = i / p.sq / p.heads, head = i / p.sq % p.heads, position = i % p.sq;
    if (!is_ragged) {
      return (batch * p.sq + position) * p.heads + head;
    }
    const auto sequence = static_cast<std::size_t>(batch);
    if (!reading.q_lengths.empty() && position >= reading.q_lengths[sequence]) {
      return std::int64_t{-1};
    }
    const std::int64_t token = first[sequence] + position;
    return reading.by_position ? head * tokens + token : token * p.heads + head;
  };
  return moved(named.tensor, {p.batches * p.heads, p.sq}, source, storage);
}

data::FileTensor of_lengths(std::string_view port, const std::vector<std::int64_t>& lengths,
                            std::vector<core::Buffer<std::byte>>& storage) {
  std::vector<double> numbers(lengths.begin(), lengths.end());
  constexpr core::Dtype kDtype = core::Dtype::int32;
  constexpr std::uint64_t kBits = 32;
  core::Buffer<std::byte>& bytes = storage.emplace_back(numbers.size() * kBits / 8);
  core::encode(numbers, kDtype, bytes.span());
  return {.name = std::string(port),
          .format = "I32",
          .kind = data::ElementKind::signed_integer,
          .element_bits = kBits,
          .dtype = kDtype,
          .shape = {static_cast<std::int64_t>(lengths.size())},
          .bytes = bytes.span()};
}

}  // namespace

bool is_shared_bias(const NamedTensor& named, const op::AttentionParams& p) {
  const std::vector<std::int64_t>& shape = named.tensor.shape;
  const auto dims = static_cast<std::ptrdiff_t>(shape.size());
  return named.port == "bias" && p.heads > 1 && dims >= 2 && shape.end()[-2] == p.sq && shape.back() == p.sk &&
         std::all_of(shape.begin(), shape.end() - 2, [](std::int64_t size) { return size == 1; });
}

HeadSteps AttentionReading::steps(std::string_view port, const data::FileTensor& tensor) const {
  std::vector<std::int64_t> steps(tensor.shape.size());
  std::int64_t step = 1;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t dim = tensor.column_major ? i : steps.size() - 1 - i;
    steps[dim] = step;
    step *= tensor.shape[dim];
  }
  const bool folds = steps.size() + 1 == layout.size();
  if (folds && layout == "bhsd") {
    steps.insert(steps.begin(), steps[0] * (is_of_keys(port) ? p.kv_heads : p.heads));
  } else if (folds) {
    steps.insert(steps.end() - 1, steps.back() * (is_of_values(port) ? p.dv : p.d));
  }
  const auto of = [&](char letter) {
    const std::size_t place = layout.find(letter);
    return place == std::string::npos ? 0 : steps[place];
  };
  return {of('b'), of(layout == "thd" ? 't' : 's'), of('h'), of('d')};
}

std::vector<std::int64_t> AttentionReading::first_tokens(bool key) const {
  std::vector<std::int64_t> first(static_cast<std::size_t>(p.batches));
  const std::vector<std::int64_t>& lengths = key ? kv_lengths : q_lengths;
  if (layout == "thd" && !lengths.empty()) {
    std::exclusive_scan(lengths.begin(), lengths.end(), first.begin(), std::int64_t{0});
  }
  return first;
}

Arranged arranged(const AttentionReading& reading, const std::vector<NamedTensor>& tensors) {
  Arranged result;
  for (const NamedTensor& named : tensors) {
    const bool is_statistic = named.port == "lse" || named.port == "max_logit";
    const bool has_heads =
        is_of_keys(named.port) || is_of_values(named.port) || named.port == "q" || named.port == "dq";
    NamedTensor& tensor = result.tensors.emplace_back(named);
    if (has_heads && reading.layout == "thd" && reading.has_lengths()) {
      tensor.tensor = in_rows(reading, named, result.storage);
    } else if (is_shared_bias(named, reading.p)) {
      const std::int64_t elements = reading.p.sq * reading.p.sk;
      tensor.tensor = moved(
          named.tensor, {reading.p.heads, reading.p.sq, reading.p.sk},
          [elements](std::int64_t i) { return i % elements; }, result.storage);
    } else if (is_statistic && (reading.layout == "thd" || reading.by_position)) {
      tensor.tensor = statistic_by_heads(reading, named, result.storage);
    }
  }
  if (reading.has_lengths()) {
    std::erase_if(result.tensors,
                  [](const NamedTensor& named) { return named.port == "q_lengths" || named.port == "kv_lengths"; });
    result.tensors.push_back({"q_lengths", of_lengths("q_lengths", reading.q_lengths, result.storage)});
    result.tensors.push_back({"kv_lengths", of_lengths("kv_lengths", reading.kv_lengths, result.storage)});
  }
  return result;
}

}  // namespace numcheck::diagnose
