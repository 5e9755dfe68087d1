#include "data/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "core/codec.hpp"
#include "core/largest_finite.hpp"
#include "core/parallel.hpp"

namespace numcheck::data {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;  // elements per task: 512 KiB of doubles, within an L2 cache
constexpr int kPaddingByte = 0xFF;

std::size_t offset_of(const op::Port& port, std::int64_t batch, std::int64_t row) {
  const auto bytes = static_cast<std::int64_t>(core::dtype_info(port.dtype).storage_bytes);
  return static_cast<std::size_t>(port.offset_bytes + (batch * port.batch_stride + row * port.ld) * bytes);
}

/// Calls body(first logical element, byte offset, count) for every run of elements that is contiguous in both orders,
/// cut into pieces of at most kChunk, in parallel.
template <class Body>
void for_each_run(const op::Port& port, const Body& body) {
  const auto total = static_cast<std::size_t>(port.elements());
  if (total == 0) {
    return;
  }
  const auto bytes = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  if (port.is_dense()) {
    core::parallel_chunks(total, kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
      body(begin, static_cast<std::size_t>(port.offset_bytes) + begin * bytes, end - begin);
    });
    return;
  }
  const auto cols = static_cast<std::size_t>(port.cols);
  const std::size_t rows_per_task = std::max<std::size_t>(1, kChunk / cols);
  const auto all_rows = static_cast<std::size_t>(port.batch * port.rows);
  core::parallel_chunks(all_rows, rows_per_task, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const auto signed_row = static_cast<std::int64_t>(row);
      body(row * cols, offset_of(port, signed_row / port.rows, signed_row % port.rows), cols);
    }
  });
}

bool is_narrow(core::Dtype dtype) {
  return core::dtype_info(dtype).storage_bytes == 1;
}

/// code = sat(RN(RN32(x * scale))): every TransformerEngine cast kernel computes the product in FP32.
void scale_values(std::span<const double> values, float scale, std::span<double> scaled) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    scaled[i] = static_cast<double>(static_cast<float>(values[i]) * scale);
  }
}

Geometry geometry_of(const op::Port& port, bool reduction_along_rows) {
  return {.cols = static_cast<std::uint64_t>(port.cols),
          .rows = static_cast<std::uint64_t>(port.rows),
          .reduced_along_rows = reduction_along_rows};
}

core::Overflow overflow_of(core::Dtype dtype) {
  return is_narrow(dtype) ? core::Overflow::saturate : core::Overflow::ieee;
}

void keep_infinities(std::span<const double> values, core::Dtype dtype, std::span<std::byte> codes) {
  const auto element = static_cast<std::size_t>(core::dtype_info(dtype).storage_bytes);
  for (std::size_t i = 0; i < values.size() && core::dtype_info(dtype).has_infinity; ++i) {
    if (std::isinf(values[i])) {
      core::encode(values.subspan(i, 1), dtype, codes.subspan(i * element, element), core::Overflow::ieee);
    }
  }
}

void fill_padding(const op::Port& port, std::span<std::byte> bytes) {
  if (!port.is_dense() || port.offset_bytes != 0) {
    std::memset(bytes.data(), kPaddingByte, bytes.size());
  }
}

}  // namespace

core::Buffer<double> generate_port(const op::Port& port, const Distribution& distribution, const core::StreamId& stream,
                                   const ExactRole& exact) {
  core::Buffer<double> values(static_cast<std::size_t>(port.elements()));
  const bool integers = distribution.name == "exact";
  ExactGeometry geometry{.plan = exact.plan,
                         .first_operand = exact.kind == ExactRole::Kind::first,
                         .rows = port.batch * port.rows,
                         .cols = port.cols,
                         .reduction_along_rows = exact.reduction_along_rows};
  if (exact.kind == ExactRole::Kind::addend) {
    geometry.plan = {.max_second = exact.plan.max_addend};
  }
  if (geometry.reduction_along_rows) {
    geometry.rows = port.rows;  // the reduction starts anew with every matrix of the batch
  }
  const Geometry lie = geometry_of(port, exact.reduction_along_rows);
  core::parallel_chunks(values.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    const std::span<double> out = values.span().subspan(begin, end - begin);
    if (integers) {
      generate_exact(geometry, stream, begin, out);
    } else {
      generate(distribution, stream, begin, out, lie);
    }
  });
  return values;
}

double absolute_max(std::span<const double> values) {
  const std::size_t chunks = (values.size() + kChunk - 1) / kChunk;
  std::vector<double> partial(chunks, 0.0);
  core::parallel_chunks(values.size(), kChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    partial[chunk] = core::largest_finite(values.subspan(begin, end - begin));
  });
  return partial.empty() ? 0 : *std::max_element(partial.begin(), partial.end());
}

double absolute_min(std::span<const double> values) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const std::size_t chunks = (values.size() + kChunk - 1) / kChunk;
  std::vector<double> partial(chunks, kNone);
  core::parallel_chunks(values.size(), kChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    double least = kNone;
    for (const double value : values.subspan(begin, end - begin)) {
      const double size = std::fabs(value);
      least = size > 0 && size < least ? size : least;
    }
    partial[chunk] = least;
  });
  return partial.empty() ? kNone : *std::ranges::min_element(partial);
}

namespace {

/// Room for a run's values, as long as the thread lives.
std::span<double> room_for(std::size_t count) {
  thread_local std::vector<double> values;
  values.resize(std::max(values.size(), count));
  return std::span(values).first(count);
}

}  // namespace

Drawn draw_port(const op::Port& port, const Distribution& distribution, const core::StreamId& stream,
                bool reduction_along_rows, std::span<std::byte> bytes) {
  fill_padding(port, bytes);
  const Geometry lie = geometry_of(port, reduction_along_rows);
  const core::Overflow overflow = overflow_of(port.dtype);
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  Drawn drawn;
  std::mutex mutex;
  for_each_run(port, [&](std::size_t first, std::size_t offset, std::size_t count) {
    const std::span<double> values = room_for(count);
    generate(distribution, stream, first, values, lie);
    core::encode(values, port.dtype, bytes.subspan(offset, count * element), overflow);
    const core::Magnitudes of_run = core::magnitudes_of(values);
    const std::scoped_lock lock(mutex);
    drawn.largest = std::max(drawn.largest, of_run.largest);
    drawn.all_finite = drawn.all_finite && of_run.all_finite;
  });
  return drawn;
}

void convert_port(const op::Port& from, std::span<const std::byte> stored, const op::Port& port,
                  std::span<std::byte> bytes) {
  fill_padding(port, bytes);
  const core::Overflow overflow = overflow_of(port.dtype);
  const auto wide = static_cast<std::size_t>(core::dtype_info(from.dtype).storage_bytes);
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const std::span<const std::byte> numbers = stored.subspan(static_cast<std::size_t>(from.offset_bytes));
  for_each_run(port, [&](std::size_t first, std::size_t offset, std::size_t count) {
    const std::span<const std::byte> of_run = numbers.subspan(first * wide, count * wide);
    if (from.dtype == core::Dtype::fp32) {
      core::narrow(of_run, port.dtype, bytes.subspan(offset, count * element), overflow);
      return;
    }
    const std::span<double> values = room_for(count);
    core::decode(of_run, from.dtype, values);
    core::encode(values, port.dtype, bytes.subspan(offset, count * element), overflow);
  });
}

void store_port(const op::Port& port, std::span<const double> values, float scale, std::span<std::byte> bytes,
                Infinities infinities) {
  fill_padding(port, bytes);
  const core::Overflow overflow = overflow_of(port.dtype);
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  for_each_run(port, [&](std::size_t first, std::size_t offset, std::size_t count) {
    const std::span<std::byte> target = bytes.subspan(offset, count * element);
    std::span<const double> numbers = values.subspan(first, count);
    std::vector<double> scaled;
    if (scale != 1.0F) {
      scaled.resize(count);
      scale_values(numbers, scale, scaled);
      numbers = scaled;
    }
    core::encode(numbers, port.dtype, target, overflow);
    if (infinities == Infinities::kept) {
      keep_infinities(numbers, port.dtype, target);
    }
  });
}

core::Buffer<double> load_port(const op::Port& port, std::span<const std::byte> bytes) {
  core::Buffer<double> values(static_cast<std::size_t>(port.elements()));
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  for_each_run(port, [&](std::size_t first, std::size_t offset, std::size_t count) {
    core::decode(bytes.subspan(offset, count * element), port.dtype, values.span().subspan(first, count));
  });
  return values;
}

void load_row(const op::Port& port, std::span<const std::byte> bytes, std::int64_t row, std::span<double> values) {
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  core::decode(bytes.subspan(offset_of(port, row / port.rows, row % port.rows), values.size() * element), port.dtype,
               values);
}

}  // namespace numcheck::data
