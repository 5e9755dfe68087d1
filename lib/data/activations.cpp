#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "data/generate_range.hpp"
#include "data/generators.hpp"

namespace numcheck::data {
namespace {

constexpr std::uint64_t kTokenDraw = 1;    // what a row has of every factor
constexpr std::uint64_t kChannelDraw = 2;  // what a column has of every factor
constexpr std::uint64_t kPlaceDraw = 3;    // which channels are outliers

constexpr std::uint64_t kTile = 1024;  // columns whose factors are held at once: at most 512 KiB, within an L2 cache

double fp32(double value) {
  return static_cast<double>(static_cast<float>(value));
}

/// Standard normal numbers times sigma: elements [first, first + count) of a draw.
std::vector<double> normals(const core::StreamId& stream, std::uint64_t draw, double sigma, std::uint64_t first,
                            std::size_t count) {
  std::vector<double> values(count);
  fill_range(first, std::span(values), [&](std::uint64_t group, std::size_t groups, double* target) {
    generator_kernels().normal(word_stream(stream, static_cast<std::uint32_t>(draw)), group, groups, 0, sigma, target);
  });
  return values;
}

/// The factors of columns [begin, end) and what their values are multiplied by.
class Channels {
 public:
  Channels(const ActivationParams& params, const core::StreamId& stream, std::uint64_t cols, std::uint64_t begin,
           std::uint64_t end, bool correlated)
      : begin_(begin), scale_(static_cast<std::size_t>(end - begin), 1.0) {
    const auto rank = static_cast<std::uint64_t>(params.rank);
    const double sigma = std::sqrt((1 - params.noise) / static_cast<double>(rank));
    for (std::uint64_t k = 0; correlated && k < rank; ++k) {
      factors_.push_back(normals(stream, kChannelDraw, sigma, k * cols + begin, scale_.size()));
    }
    if (cols > 1) {
      place_outliers(params, stream, cols);
    }
  }

  /// Turns the noise of columns [col, col + out.size()) of a row into the row's values. Products of FP32 numbers are
  /// exact in double, so a fused multiply-add yields the same bits.
  void apply(std::uint64_t col, const double* token, double mean, std::span<double> out) const {
    const auto offset = static_cast<std::size_t>(col - begin_);
    for (std::size_t k = 0; k < factors_.size(); ++k) {
      const double* const factor = factors_[k].data() + offset;
      for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] += token[k] * factor[i];
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = fp32((out[i] + mean) * scale_[offset + i]);
    }
  }

 private:
  void place_outliers(const ActivationParams& params, const core::StreamId& stream, std::uint64_t cols) {
    const auto every = static_cast<std::uint64_t>(params.outlier_every);
    const std::uint64_t first = begin_ / every;
    const std::uint64_t end = begin_ + scale_.size();
    std::vector<std::uint32_t> words(static_cast<std::size_t>((end - 1) / every - first + 1));
    generate_words(word_stream(stream, kPlaceDraw), first, words);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t start = (first + i) * every;
      const std::uint64_t place = start + ((words[i] * std::min(every, cols - start)) >> 32);
      if (place >= begin_ && place < end) {
        scale_[static_cast<std::size_t>(place - begin_)] = params.outlier;
      }
    }
  }

  std::uint64_t begin_;
  std::vector<std::vector<double>> factors_;  // [rank][columns]
  std::vector<double> scale_;
};

/// The mean of the row at this position of its matrix.
double mean_of(const ActivationParams& params, std::uint64_t position, std::uint64_t rows) {
  const double progress = (static_cast<double>(position) + 0.5) / static_cast<double>(rows);
  const double drift = fp32(params.drift * progress);
  return position == 0 ? drift + fp32(params.sink) : drift;
}

}  // namespace

void generate_activations(const ActivationParams& params, const core::StreamId& stream, std::uint64_t first,
                          std::span<double> out, const Geometry& geometry) {
  if (out.empty()) {
    return;
  }
  const std::uint64_t cols = geometry.cols;
  const bool tokens = geometry.rows > 1 && cols > 1;
  generate_normal({.sigma = tokens ? std::sqrt(params.noise) : 1.0}, stream, first, out);
  const std::uint64_t last = first + out.size() - 1;
  const std::uint64_t first_row = first / cols;
  const std::uint64_t last_row = last / cols;
  const auto rank = static_cast<std::uint64_t>(tokens ? params.rank : 0);
  const std::vector<double> token =
      normals(stream, kTokenDraw, 1, first_row * rank, static_cast<std::size_t>((last_row - first_row + 1) * rank));
  const std::uint64_t end = last_row > first_row ? cols : last % cols + 1;
  for (std::uint64_t begin = last_row > first_row ? 0 : first % cols; begin < end; begin += kTile) {
    const std::uint64_t tile_end = std::min(end, begin + kTile);
    const Channels channels(params, stream, cols, begin, tile_end, tokens);
    for (std::uint64_t row = first_row; row <= last_row; ++row) {
      const std::uint64_t from = std::max(row * cols + begin, first);
      const std::uint64_t to = std::min(row * cols + tile_end, last + 1);
      if (from < to) {
        const double mean = tokens ? mean_of(params, row % geometry.rows, geometry.rows) : 0;
        channels.apply(from - row * cols, token.data() + (row - first_row) * rank, mean,
                       out.subspan(static_cast<std::size_t>(from - first), static_cast<std::size_t>(to - from)));
      }
    }
  }
}

}  // namespace numcheck::data
