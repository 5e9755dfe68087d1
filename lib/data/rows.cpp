#include <array>
#include <vector>

#include "data/generate_range.hpp"
#include "data/generators.hpp"

namespace numcheck::data {
namespace {

struct RowNumbers {
  double spread;
  double mean;
};

/// The numbers of rows [first, first + count): draw 1 makes the spreads, draw 2 the means.
std::vector<RowNumbers> row_numbers(const RowsParams& params, const core::StreamId& stream, std::uint64_t first,
                                    std::size_t count) {
  constexpr std::array kMeans = {0.0, 0x1p4, 0x1p10};  // in spreads
  std::vector<double> spreads(count);
  fill_range(first, std::span(spreads), [&](std::uint64_t group, std::size_t groups, double* target) {
    generator_kernels().power(word_stream(stream, 1), group, groups, params.low, params.high, false, target);
  });
  std::vector<std::uint32_t> words(count);
  generate_words(word_stream(stream, 2), first, words);
  std::vector<RowNumbers> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t magnitude = words[i] & 0x7FFFFFFF;
    const double mean = spreads[i] * kMeans[static_cast<std::size_t>((magnitude * kMeans.size()) >> 31)];
    rows[i] = {spreads[i], (words[i] >> 31) != 0 ? -mean : mean};
  }
  return rows;
}

}  // namespace

void generate_rows(const RowsParams& params, const core::StreamId& stream, std::uint64_t first, std::span<double> out,
                   std::uint64_t cols) {
  if (out.empty()) {
    return;
  }
  generate_normal({}, stream, first, out);
  const std::uint64_t first_row = first / cols;
  const std::uint64_t last_row = (first + out.size() - 1) / cols;
  const std::vector<RowNumbers> rows =
      row_numbers(params, stream, first_row, static_cast<std::size_t>(last_row - first_row + 1));
  std::uint64_t row = 0;
  std::uint64_t col = first % cols;
  for (double& value : out) {
    const RowNumbers& numbers = rows[static_cast<std::size_t>(row)];
    value = static_cast<double>(static_cast<float>(value * numbers.spread + numbers.mean));
    if (++col == cols) {
      col = 0;
      ++row;
    }
  }
}

}  // namespace numcheck::data
