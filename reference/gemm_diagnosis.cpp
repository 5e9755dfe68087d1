#include "reference/gemm_diagnosis.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/known_cause.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 14;
constexpr std::uint64_t kMinElements = 32;

/// The parts of one exact element.
struct Parts {
  double y = 0;
  double addend = 0;  ///< beta C
  double bias = 0;
};

struct Hypothesis {
  std::string_view name;
  std::string_view words;
  double Parts::* last;  ///< what is added to the rounded rest
};

constexpr std::array kHypotheses = {Hypothesis{op::kProductRounded.name, "a product rounded to", &Parts::addend},
                                    Hypothesis{op::kSumRounded.name, "a sum without bias rounded to", &Parts::bias}};

/// Elements where one rounding and several differ, and those of them that have the bits of several.
struct Count {
  std::uint64_t differing = 0;
  std::uint64_t rounded = 0;
};

/// The finished output, with what is needed to split its elements into their parts.
struct Output {
  const op::Delivered& d;
  std::span<const double> expected;  ///< of every element, or of a sample
  std::span<const std::int64_t> sample;
  const op::Operand* c = nullptr;
  const op::Operand* bias = nullptr;
  double beta = 0;
  std::int64_t columns = 1;
  bool above_zero = false;  ///< relu: only these can be split

  [[nodiscard]] std::size_t index(std::size_t i) const noexcept {
    return sample.empty() ? i : static_cast<std::size_t>(sample[i]);
  }
  [[nodiscard]] Parts parts(std::size_t i) const noexcept {
    const std::size_t at = index(i);
    return {expected[i], c == nullptr ? 0 : beta * c->scale * c->data[at],
            bias == nullptr ? 0 : bias->scale * bias->data[at % static_cast<std::size_t>(columns)]};
  }
};

Count count_bits(const Output& output, const Hypothesis& hypothesis) {
  Count total;
  std::mutex mutex;
  core::parallel_chunks(output.expected.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    Count found;
    for (std::size_t i = begin; i < end; ++i) {
      const Parts parts = output.parts(i);
      const double once = core::round_to(parts.y, output.d.dtype);
      const double last = parts.*hypothesis.last;
      const double more = core::round_to(core::round_to(parts.y - last, output.d.dtype) + last, output.d.dtype);
      const bool differs =
          std::isfinite(once) && std::isfinite(more) && once != more && (!output.above_zero || (once > 0 && more > 0));
      found.differing += differs ? 1 : 0;
      found.rounded += differs && output.d.value[output.index(i)] == more ? 1 : 0;
    }
    const std::lock_guard lock(mutex);
    total.differing += found.differing;
    total.rounded += found.rounded;
  });
  return total;
}

}  // namespace

std::vector<op::Finding> gemm_diagnosis(const op::FindingRequest& request) {
  const auto p = op::from_params<op::GemmParams>(*request.params);
  const op::Delivered& d = request.outputs[0];
  const bool narrow = d.dtype == core::Dtype::bf16 || d.dtype == core::Dtype::fp16;
  if (!narrow || p.epilogue == "gelu") {
    return {};
  }
  const Output output{.d = d,
                      .expected = request.expected->outputs.at(0).value.span(),
                      .sample = request.sample->indices,
                      .c = op::find_operand(request.inputs, "c"),
                      .bias = op::find_operand(request.inputs, "bias"),
                      .beta = p.beta,
                      .columns = p.n,
                      .above_zero = p.epilogue == "relu"};
  std::vector<op::Finding> findings;
  for (const Hypothesis& hypothesis : kHypotheses) {
    const Count count = count_bits(output, hypothesis);
    if (count.differing >= kMinElements) {
      const double share = static_cast<double>(count.rounded) / static_cast<double>(count.differing);
      findings.push_back(
          {.name = std::string(hypothesis.name),
           .port = std::string(d.port),
           .measured = share,
           .text = fmt::format("{:.4g} % of the {} elements that tell the two apart have the bits of {} {} first",
                               100 * share, count.differing, hypothesis.words, core::dtype_info(d.dtype).name)});
    }
  }
  return findings;
}

}  // namespace numcheck::reference
