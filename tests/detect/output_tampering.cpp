#include "output_tampering.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "kernels/harness/port_image.hpp"

namespace numcheck::detect {
namespace {

/// Of a row, a column, a tile of up to 64 x 64 elements, or all elements.
template <class Change>
void change_some(Output& out, Random& random, Change change) {
  const std::size_t kind = below(random, 4), row = below(random, out.rows()), col = below(random, out.cols());
  constexpr std::size_t kTile = 64;
  const std::size_t r0 = kind == 0 ? row : kind == 2 ? row / kTile * kTile : 0;
  const std::size_t r1 = kind == 0 ? row + 1 : kind == 2 ? std::min(r0 + kTile, out.rows()) : out.rows();
  const std::size_t c0 = kind == 1 ? col : kind == 2 ? col / kTile * kTile : 0;
  const std::size_t c1 = kind == 1 ? col + 1 : kind == 2 ? std::min(c0 + kTile, out.cols()) : out.cols();
  for (std::size_t r = r0; r < r1; ++r) {
    for (std::size_t c = c0; c < c1; ++c) {
      const std::size_t i = r * out.cols() + c;
      out.set(i, change(out.value(i)));
    }
  }
}

double draw_size(Random& random) {
  return std::pow(10.0, -static_cast<double>(below(random, 700)) / 100);
}

constexpr std::array kNumbers = {0.0,
                                 -0.0,
                                 1.0,
                                 7.0,
                                 -1.0,
                                 1e-3,
                                 1e30,
                                 -1e30,
                                 448.0,
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()};

constexpr std::array kTamperings = {
    Tampering{"element_number",
              [](Output& out, Random& r) { out.set(below(r, out.size()), kNumbers.at(below(r, kNumbers.size()))); }},
    Tampering{"element_bit",
              [](Output& out, Random& r) {
                const std::size_t i = below(r, out.size());
                out.set_bits(i, out.bits(i) ^ (std::uint64_t{1} << below(r, 8 * out.width())));
              }},
    Tampering{"element_scaled",
              [](Output& out, Random& r) {
                const std::size_t i = below(r, out.size());
                out.set(i, out.value(i) * (1 + draw_size(r)));
              }},
    Tampering{"element_negated",
              [](Output& out, Random& r) {
                const std::size_t i = below(r, out.size());
                out.set(i, -out.value(i));
              }},
    Tampering{"element_copied",
              [](Output& out, Random& r) { out.set_bits(below(r, out.size()), out.bits(below(r, out.size()))); }},
    Tampering{"some_number",
              [](Output& out, Random& r) {
                const double number = kNumbers.at(below(r, kNumbers.size()));
                change_some(out, r, [number](double) { return number; });
              }},
    Tampering{"some_scaled",
              [](Output& out, Random& r) {
                const double factor = 1 + draw_size(r);
                change_some(out, r, [factor](double y) { return y * factor; });
              }},
    Tampering{"some_negated", [](Output& out, Random& r) { change_some(out, r, [](double y) { return -y; }); }},
    Tampering{"some_noisy",
              [](Output& out, Random& r) {
                const double size = draw_size(r);
                std::normal_distribution<double> normal;
                change_some(out, r, [&](double y) { return y * (1 + size * normal(r)); });
              }},
    Tampering{"some_flushed",
              [](Output& out, Random& r) {
                const double least = std::pow(10.0, -static_cast<double>(below(r, 40)));
                change_some(out, r, [least](double y) { return std::fabs(y) < least ? 0 : y; });
              }},
    Tampering{"nan_to_number",
              [](Output& out, Random& r) {
                const double number = kNumbers.at(below(r, 9));
                change_some(out, r, [number](double y) { return std::isnan(y) ? number : y; });
              }},
    Tampering{"infinity_to",
              [](Output& out, Random& r) {
                const double number = kNumbers.at(below(r, kNumbers.size()));
                change_some(out, r, [number](double y) { return std::isinf(y) ? number : y; });
              }},
    Tampering{"swapped_rows",
              [](Output& out, Random& r) {
                const std::size_t a = below(r, out.rows()), b = below(r, out.rows());
                for (std::size_t c = 0; c < out.cols(); ++c) {
                  const std::uint64_t word = out.bits(a * out.cols() + c);
                  out.set_bits(a * out.cols() + c, out.bits(b * out.cols() + c));
                  out.set_bits(b * out.cols() + c, word);
                }
              }},
    Tampering{"row_copied",
              [](Output& out, Random& r) {
                const std::size_t a = below(r, out.rows()), b = below(r, out.rows());
                for (std::size_t c = 0; c < out.cols(); ++c) {
                  out.set_bits(a * out.cols() + c, out.bits(b * out.cols() + c));
                }
              }},
    Tampering{"shifted",
              [](Output& out, Random& r) {
                const std::size_t row = below(r, out.rows());
                for (std::size_t c = out.cols() - 1; c > 0; --c) {
                  out.set_bits(row * out.cols() + c, out.bits(row * out.cols() + c - 1));
                }
              }},
    Tampering{
        "coarser",
        [](Output& out, Random& r) {
          constexpr std::array kFormats = {core::Dtype::tf32, core::Dtype::fp16, core::Dtype::bf16,
                                           core::Dtype::fp8_e4m3};
          const core::Dtype format = kFormats.at(below(r, kFormats.size()));
          const core::Rounding rounding = below(r, 2) == 0 ? core::Rounding::nearest_even : core::Rounding::toward_zero;
          change_some(out, r, [=](double y) { return core::round_to(y, format, core::Overflow::ieee, rounding); });
        }},
};

}  // namespace

std::size_t Output::width() const {
  return static_cast<std::size_t>(core::dtype_info(port_.dtype).storage_bytes);
}

std::uint64_t Output::bits(std::size_t i) const {
  std::uint64_t word = 0;
  std::memcpy(&word, at(i), width());
  return word;
}

void Output::set_bits(std::size_t i, std::uint64_t word) {
  std::memcpy(at(i), &word, width());
}

double Output::value(std::size_t i) const {
  return core::decode(bits(i), port_.dtype);
}

void Output::set(std::size_t i, double value) {
  set_bits(i, core::encode(value, port_.dtype));
}

std::byte* Output::at(std::size_t i) const {
  const auto index = static_cast<std::int64_t>(i);
  const std::int64_t row = index / port_.cols;
  return bytes_.data() +
         kernels::harness::element_offset(port_, row / port_.rows, row % port_.rows, index % port_.cols);
}

std::span<const Tampering> tamperings() noexcept {
  return kTamperings;
}

}  // namespace numcheck::detect
