// The elements of a file's tensor, in row-major order.
#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/printable.hpp"
#include "data/tensor_file.hpp"

namespace numcheck::data {
namespace {

constexpr std::uint64_t kByte = 8;                    // bits
constexpr std::size_t kChunk = std::size_t{1} << 16;  // elements that one thread takes at once

std::string title(const FileTensor& tensor) {
  constexpr std::size_t kShown = 80;
  return fmt::format("tensor \"{}\" ({})", core::printable(tensor.name, kShown),
                     core::printable(tensor.format, kShown));
}

/// Elements of a column-major tensor that follow each other in the file; in row-major order they are `step` apart.
struct Run {
  std::size_t from = 0;
  std::size_t count = 0;
  std::size_t to = 0;
  std::size_t step = 0;
};

/// The dimensions of a column-major tensor, without those of size 1: at least two.
struct ColumnMajor {
  std::size_t first = 1;  ///< contiguous in the file
  std::vector<std::size_t> between;
  std::size_t last = 1;  ///< contiguous in row-major order
  std::size_t between_product = 1;

  explicit ColumnMajor(std::span<const std::int64_t> shape) {
    for (const std::int64_t dimension : shape) {
      if (dimension != 1) {
        between.push_back(static_cast<std::size_t>(dimension));
      }
    }
    first = between.front();
    last = between.back();
    between.pop_back();
    between.erase(between.begin());
    between_product = std::accumulate(between.begin(), between.end(), std::size_t{1}, std::multiplies<>());
  }

  /// Of indices between, their number in the file's order from that in row-major order.
  [[nodiscard]] std::size_t file_between(std::size_t row_major) const noexcept {
    std::size_t stride = between_product, place = 0;
    for (std::size_t i = between.size(); i-- > 0;) {
      stride /= between[i];
      place += row_major % between[i] * stride;
      row_major /= between[i];
    }
    return place;
  }
};

constexpr std::size_t kTileFirst = 64,
                      kTileLast = 1024;  // of elements; what is written of a tile stays in the L1 cache

/// In tiles, in parallel.
void for_each_run(const ColumnMajor& shape, const std::function<void(const Run&)>& take) {
  const std::size_t tiles_first = (shape.first + kTileFirst - 1) / kTileFirst;
  const std::size_t tiles_last = (shape.last + kTileLast - 1) / kTileLast;
  const auto take_tile = [&](std::size_t tile) {
    const std::size_t last_begin = tile % tiles_last * kTileLast;
    const std::size_t last_end = std::min(shape.last, last_begin + kTileLast);
    const std::size_t first = tile / tiles_last % tiles_first * kTileFirst;
    const std::size_t between = tile / tiles_last / tiles_first;
    const std::size_t file_between = shape.file_between(between);
    for (std::size_t last = last_begin; last < last_end; ++last) {
      take({.from = (last * shape.between_product + file_between) * shape.first + first,
            .count = std::min(kTileFirst, shape.first - first),
            .to = (first * shape.between_product + between) * shape.last + last,
            .step = shape.between_product * shape.last});
    }
  };
  const std::size_t largest_tile = std::min(kTileFirst, shape.first) * std::min(kTileLast, shape.last);
  core::parallel_chunks(shape.between_product * tiles_first * tiles_last,
                        std::max<std::size_t>(1, kChunk / largest_tile),
                        [&](std::size_t /*index*/, std::size_t begin, std::size_t end) {
                          for (std::size_t tile = begin; tile < end; ++tile) {
                            take_tile(tile);
                          }
                        });
}

template <class T>
void decode_integers(std::span<const std::byte> bytes, std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    values[i] = static_cast<double>(value);
  }
}

void decode_booleans(std::span<const std::byte> bytes, std::span<double> values) {
  std::ranges::transform(bytes, values.begin(), [](std::byte each) { return each == std::byte{0} ? 0.0 : 1.0; });
}

using Decode = std::function<void(std::span<const std::byte>, std::span<double>)>;

Decode decoder_of(const FileTensor& tensor) {
  if (tensor.dtype) {
    return [dtype = *tensor.dtype](auto bytes, auto values) { core::decode(bytes, dtype, values); };
  }
  struct Integers {
    ElementKind kind;
    std::uint64_t bits;
    void (*decode)(std::span<const std::byte>, std::span<double>);
  };
  static constexpr std::array kIntegers = std::to_array<Integers>({
      {ElementKind::boolean, 8, decode_booleans},
      {ElementKind::signed_integer, 8, decode_integers<std::int8_t>},
      {ElementKind::signed_integer, 16, decode_integers<std::int16_t>},
      {ElementKind::signed_integer, 64, decode_integers<std::int64_t>},
      {ElementKind::unsigned_integer, 16, decode_integers<std::uint16_t>},
      {ElementKind::unsigned_integer, 32, decode_integers<std::uint32_t>},
      {ElementKind::unsigned_integer, 64, decode_integers<std::uint64_t>},
  });
  const auto* const found = std::ranges::find_if(
      kIntegers, [&](const Integers& each) { return each.kind == tensor.kind && each.bits == tensor.element_bits; });
  if (found != kIntegers.end()) {
    return found->decode;
  }
  throw core::UsageError(
      fmt::format("{}: {}", title(tensor),
                  tensor.kind == ElementKind::raw ? "its bytes may be of any format; say which, for example bf16"
                  : tensor.kind == ElementKind::complex
                      ? "complex numbers are not read; save real and imaginary parts as tensors of their own"
                      : "this format is not read; convert it to one of at least its precision, for example F32"));
}

}  // namespace

FileTensor read_as(FileTensor tensor, core::Dtype dtype) {
  const core::DtypeInfo& info = core::dtype_info(dtype);
  if (tensor.element_bits != kByte * static_cast<std::uint64_t>(info.storage_bytes)) {
    throw core::UsageError(fmt::format("{}: its elements have {} bits and cannot be {}, which has {}", title(tensor),
                                       tensor.element_bits, info.name,
                                       kByte * static_cast<std::uint64_t>(info.storage_bytes)));
  }
  tensor.dtype = dtype;
  return tensor;
}

core::Buffer<double> values_of(const FileTensor& tensor) {
  const Decode decode = decoder_of(tensor);
  const std::size_t element = static_cast<std::size_t>(tensor.element_bits / kByte);
  core::Buffer<double> values(tensor.elements());
  if (values.empty()) {
    return values;
  }
  if (!tensor.column_major) {
    core::parallel_chunks(values.size(), kChunk, [&](std::size_t /*index*/, std::size_t begin, std::size_t end) {
      decode(tensor.bytes.subspan(begin * element, (end - begin) * element), values.span().subspan(begin, end - begin));
    });
    return values;
  }
  for_each_run(ColumnMajor(tensor.shape), [&](const Run& run) {
    std::array<double, kTileFirst> numbers{};
    decode(tensor.bytes.subspan(run.from * element, run.count * element), std::span(numbers).first(run.count));
    for (std::size_t i = 0; i < run.count; ++i) {
      values[run.to + i * run.step] = numbers[i];
    }
  });
  return values;
}

std::vector<std::byte> dense_bytes(const FileTensor& tensor) {
  if (!tensor.column_major || tensor.bytes.empty()) {
    return {tensor.bytes.begin(), tensor.bytes.end()};
  }
  const auto element = static_cast<std::size_t>(tensor.element_bits / kByte);
  std::vector<std::byte> result(tensor.bytes.size());
  for_each_run(ColumnMajor(tensor.shape), [&](const Run& run) {
    const std::byte* source = tensor.bytes.data() + run.from * element;
    for (std::size_t i = 0; i < run.count; ++i, source += element) {
      std::memcpy(result.data() + (run.to + i * run.step) * element, source, element);
    }
  });
  return result;
}

}  // namespace numcheck::data
