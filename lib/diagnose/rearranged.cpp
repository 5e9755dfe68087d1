// Hypotheses about outputs that have all their elements, and none where it belongs.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "core/dtype.hpp"
#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {
namespace {

/// The output whose matrices have element `from(row, col)` of each at (row, col).
template <class From>
Trial rearranged(const Evidence& evidence, const op::Port& port, const From& from) {
  const core::Buffer<std::byte>& bytes = *evidence.subject.outputs.find(evidence.port)->second;
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const auto rows = static_cast<std::size_t>(port.rows), cols = static_cast<std::size_t>(port.cols);
  Trial trial = as_declared(evidence.subject);
  auto stored = std::make_shared<core::Buffer<std::byte>>(bytes.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(port.elements()); ++i) {
    const std::size_t matrix = i / (rows * cols) * rows * cols;
    const std::size_t source = matrix + from(i % (rows * cols) / cols, i % cols);
    std::memcpy(stored->data() + i * element, bytes.data() + source * element, element);
  }
  trial.stored.emplace(evidence.port, std::move(stored));
  return trial;
}

/// The whole output with its elements at other places.
std::vector<Hypothesis> moved_output(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  // Draws are as likely in another order, where a few impossible ones may come to lie where nobody looks.
  constexpr std::ptrdiff_t kFew = 16;
  if (evidence.values.unpredictable && std::ranges::count(evidence.is_wrong, std::uint8_t{1}) <= kFew) {
    return {};
  }
  const core::Buffer<std::byte>& bytes = *evidence.subject.outputs.find(evidence.port)->second;
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const auto rows = static_cast<std::size_t>(port.rows), cols = static_cast<std::size_t>(port.cols);
  if (rows < 2 || cols < 2 || bytes.size() != static_cast<std::size_t>(port.elements()) * element) {
    return {};
  }
  return {{fmt::format("{}_stored_transposed", evidence.port),
           {},
           fmt::format("{} is stored transposed", evidence.port),
           fmt::format("Check the layout that {} is written in, or transpose it before comparing.", evidence.port),
           rearranged(evidence, port, [rows](std::size_t row, std::size_t col) { return col * rows + row; })},
          {fmt::format("{}_stored_reversed", evidence.port),
           {},
           fmt::format("{} is stored from its end: the last element comes first", evidence.port),
           "Look for a flip of both dimensions, and for indices that count down.",
           rearranged(evidence, port, [rows, cols](std::size_t row, std::size_t col) {
             return rows * cols - 1 - (row * cols + col);
           })}};
}

/// Another output of the same shape and format in this one's place, and this one in that one's.
std::vector<Hypothesis> exchanged_outputs(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const op::Port port = port_of(evidence);
  const SharedBytes& own = evidence.subject.outputs.find(evidence.port)->second;
  std::vector<Hypothesis> all;
  for (const op::Port& other : c.op->ports(c.params, *c.mode)) {
    const auto given = evidence.subject.outputs.find(other.name);
    const bool is_alike = other.rows == port.rows && other.cols == port.cols && other.batch == port.batch &&
                          other.dtype == port.dtype && other.role == port.role;
    if (given == evidence.subject.outputs.end() || other.name == port.name || !is_alike) {
      continue;
    }
    Trial trial = as_declared(evidence.subject);
    trial.stored.emplace(port.name, given->second);
    trial.stored.emplace(other.name, own);
    all.push_back({fmt::format("{}_and_{}_exchanged", port.name, other.name),
                   {},
                   fmt::format("{} and {} are exchanged", port.name, other.name),
                   "Check the order of the results where they are unpacked.",
                   std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"OUTPUT_stored_transposed, OUTPUT_stored_reversed",
                 "the output's matrices transposed, or their elements in reverse order", &moved_output},
    CatalogueRow{"OUTPUT_and_OUTPUT_exchanged", "two outputs of one shape exchanged: dk_and_dv_exchanged",
                 &exchanged_outputs, Stage::first, true}};

}  // namespace

std::span<const CatalogueRow> rearranged_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
