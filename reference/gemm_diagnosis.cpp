#include "reference/gemm_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <mutex>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "op/field.hpp"
#include "op/gemm.hpp"

namespace numcheck::reference {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 14;
constexpr std::uint64_t kFewest = 32;

/// Elements that tell one rounding from two, and those of them that were rounded twice.
struct Count {
  std::uint64_t telling = 0;
  std::uint64_t twice = 0;
};

/// `index` maps an expected value to its element.
template <class Index>
Count count_twice_rounded(const op::Delivered& d, std::span<const double> expected, std::span<const double> c,
                          double factor, const Index& index) {
  Count total;
  std::mutex mutex;
  core::parallel_chunks(expected.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    Count found;
    for (std::size_t i = begin; i < end; ++i) {
      const double addend = factor * c[index(i)];
      const double once = core::round_to(expected[i], d.dtype);
      const double twice = core::round_to(core::round_to(expected[i] - addend, d.dtype) + addend, d.dtype);
      const bool tells = std::isfinite(once) && std::isfinite(twice) && once != twice;
      found.telling += tells ? 1 : 0;
      found.twice += tells && d.value[index(i)] == twice ? 1 : 0;
    }
    const std::lock_guard lock(mutex);
    total.telling += found.telling;
    total.twice += found.twice;
  });
  return total;
}

}  // namespace

std::vector<op::Finding> gemm_diagnosis(const op::FindingRequest& request) {
  const auto p = op::from_params<op::GemmParams>(*request.params);
  const op::Delivered& d = request.outputs[0];
  const bool narrow = d.dtype == core::Dtype::bf16 || d.dtype == core::Dtype::fp16;
  if (!narrow || p.beta == 0 || p.bias || p.epilogue != "none") {
    return {};
  }
  const op::Operand& c = op::operand_named(request.inputs, "c");
  const std::span<const double> addends(c.data, c.elements());
  const std::span<const double> expected = request.expected->outputs.at(0).value.span();
  const std::vector<std::int64_t>& indices = request.sample->indices;
  const double factor = p.beta * c.scale;
  const Count count = request.sample->all()
                          ? count_twice_rounded(d, expected, addends, factor, [](std::size_t i) { return i; })
                          : count_twice_rounded(d, expected, addends, factor,
                                                [&](std::size_t i) { return static_cast<std::size_t>(indices[i]); });
  if (count.telling < kFewest) {
    return {};
  }
  const double share = static_cast<double>(count.twice) / static_cast<double>(count.telling);
  const std::string_view format = core::dtype_info(d.dtype).name;
  return {{.name = "product rounded before C is added",
           .port = std::string(d.port),
           .measured = share,
           .text = fmt::format("{:.4g} % of the {} elements that tell have the bits of a product rounded to {} first",
                               100 * share, count.telling, format)}};
}

}  // namespace numcheck::reference
