#include "verdict/exact_bits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/counted.hpp"
#include "core/parallel.hpp"
#include "core/trace.hpp"
#include "metric/reader.hpp"
#include "tolerance/gate_table.hpp"

namespace numcheck::verdict {
namespace {

/// Elements whose bits are wrong.
struct Wrong {
  std::size_t count = 0;
  std::size_t first = 0;

  void add(std::size_t at) {
    first = count == 0 ? at : first;
    ++count;
  }
};

/// The elements of [0, size) that are wrong by their bits, found in parallel.
template <class IsWrong>
Wrong count_wrong(const ComparedPort& compared, std::size_t size, const IsWrong& is_wrong) {
  constexpr std::size_t kChunk = std::size_t{1} << 16, kPiece = 1024;
  std::vector<Wrong> chunks((size + kChunk - 1) / kChunk);
  core::parallel_chunks(size, kChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    std::array<std::uint64_t, kPiece> bits;
    for (std::size_t first = begin; first < end; first += kPiece) {
      const std::size_t count = std::min(kPiece, end - first);
      compared.bits_from(first, std::span(bits).first(count));
      for (std::size_t i = 0; i < count; ++i) {
        if (is_wrong(first + i, bits[i])) {
          chunks[chunk].add(first + i);
        }
      }
    }
  });
  Wrong all;
  for (const Wrong& some : chunks) {
    all.first = all.count == 0 ? some.first : all.first;
    all.count += some.count;
  }
  return all;
}

const worker::HostPort& first_input(const EvaluationContext& context) {
  return *std::ranges::find(context.host, op::Role::input,
                            [](const worker::HostPort& host) { return host.port->role; });
}

/// Elements that do not have the bits of their sources.
Wrong other_than_moved(const EvaluationContext& context, const ComparedPort& compared) {
  const op::ReferenceRequest request{&context.group->params, {context.inputs().begin(), context.inputs().end()}, {}};
  const std::vector<std::int64_t> sources = context.group->row->reference.moved(request);
  const worker::HostPort& input = first_input(context);
  metric::CompareInput stored;
  stored.port = input.port;
  stored.got = input.bytes;
  return count_wrong(compared, sources.size(),
                     [&](std::size_t at, std::uint64_t bits) { return bits != metric::bits_at(stored, sources[at]); });
}

/// Zeros whose sign is not that of what they are the rounding of.
Wrong zeros_of_other_sign(const EvaluationContext& context, const ComparedPort& compared) {
  const core::Dtype format = compared.port().dtype;
  const std::uint64_t positive = core::encode(0.0, format), negative = core::encode(-0.0, format);
  const std::span<const double> expected = expected_values(context, compared.port()).value.span();
  return count_wrong(compared, positive == negative ? 0 : expected.size(), [&](std::size_t at, std::uint64_t got) {
    const std::uint64_t right = std::signbit(expected[at]) ? negative : positive;
    return (got == positive || got == negative) && got != right;
  });
}

}  // namespace

void judge_bits(const EvaluationContext& context, const ComparedPort& compared, const metric::Statistics& statistics,
                std::vector<tolerance::Criterion>& criteria) {
  const op::Port& port = compared.port();
  const auto exact =
      std::ranges::find(criteria, tolerance::gate_name(tolerance::Gate::exact), &tolerance::Criterion::name);
  if (port.role != op::Role::output || !expected_values(context, port).bit_exact || exact == criteria.end()) {
    return;
  }
  const bool moved = context.group->row->reference.moved != nullptr;
  if (statistics.bits_hold && !moved) {
    return;
  }
  const core::Span span("bits", port.name);
  const Wrong wrong = moved ? other_than_moved(context, compared) : zeros_of_other_sign(context, compared);
  if (wrong.count == 0) {
    return;
  }
  // A move has counted all elements; zeros of the wrong sign are equal to the right ones.
  const auto count = static_cast<double>(wrong.count);
  exact->measured = moved ? std::max(exact->measured, count) : exact->measured + count;
  exact->ok = false;
  exact->source += moved
                       ? fmt::format("; {} with other bits than what was moved there", core::counted(count, "element"))
                       : fmt::format("; {} with the wrong sign", core::counted(count, "zero"));
  exact->source += fmt::format(", the first in row {}, column {}", wrong.first / static_cast<std::size_t>(port.cols),
                               wrong.first % static_cast<std::size_t>(port.cols));
}

}  // namespace numcheck::verdict
