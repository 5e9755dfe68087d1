#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "data/distribution.hpp"
#include "data/generate_range.hpp"

namespace numcheck::data {
namespace {

// The second form for promoted FP8: 4..15 are E4M3 numbers whose products need the promoted accumulator (trust.md,
// section 1).
constexpr std::uint64_t kPositiveLow = 4;
constexpr std::uint64_t kPositiveCount = 12;
constexpr std::size_t kPiece = 4 * kGroup;

void check(const ExactGeometry& geometry) {
  const op::ExactPlan& plan = geometry.plan;
  const std::int64_t max = geometry.first_operand ? plan.max_first : plan.max_second;
  if (plan.stride < 1 || max < 1 || geometry.rows < 1 || geometry.cols < 1) {
    throw core::InternalError("exact inputs: stride " + std::to_string(plan.stride) + ", largest integer " +
                              std::to_string(max) + ", " + std::to_string(geometry.rows) + " x " +
                              std::to_string(geometry.cols) + " elements; all must be at least 1");
  }
}

void fill_integers(const ExactGeometry& geometry, const core::StreamId& stream, std::uint64_t first,
                   std::span<double> out) {
  const auto max =
      static_cast<std::uint64_t>(geometry.first_operand ? geometry.plan.max_first : geometry.plan.max_second);
  std::array<std::uint32_t, kPiece> words;
  for (std::size_t begin = 0; begin < out.size(); begin += kPiece) {
    const std::size_t size = std::min(kPiece, out.size() - begin);
    generate_words(word_stream(stream), first + begin, std::span(words).first(size));
    for (std::size_t i = 0; i < size; ++i) {
      out[begin + i] = geometry.plan.positive ? static_cast<double>(kPositiveLow + ((words[i] * kPositiveCount) >> 32))
                                              : signed_integer(words[i], max);
    }
  }
}

/// Chooses the one element of each block that is kept. A block is `stride` consecutive reduction indices of one line; a
/// line is a row, or a column of one matrix if the reduction index is the row. A line's last block may be shorter.
class Sieve {
 public:
  Sieve(const ExactGeometry& geometry, const core::StreamId& stream)
      : along_rows_(geometry.reduction_along_rows),
        rows_(static_cast<std::uint64_t>(geometry.rows)),
        cols_(static_cast<std::uint64_t>(geometry.cols)),
        stride_(static_cast<std::uint64_t>(geometry.plan.stride)),
        depth_(along_rows_ ? rows_ : cols_),
        blocks_((depth_ + stride_ - 1) / stride_),
        stream_(word_stream(stream, 1)) {}

  /// Zeroes those of elements [first, first + out.size()) that are not kept.
  void apply(std::uint64_t first, std::span<double> out) const {
    for (std::size_t done = 0; done < out.size();) {
      const std::uint64_t element = first + done;
      const std::uint64_t line = element / cols_;  // over all matrices
      const std::uint64_t col = element % cols_;
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(out.size() - done, cols_ - col));
      const std::span<double> piece = out.subspan(done, size);
      if (along_rows_) {
        sieve_columns(line, col, piece);
      } else {
        sieve_row(line, col, piece);
      }
      done += size;
    }
  }

 private:
  /// Position within a block of `size` elements.
  static std::uint64_t position(std::uint32_t word, std::uint64_t size) { return (word * size) >> 32; }

  [[nodiscard]] std::uint64_t block_size(std::uint64_t block) const {
    return std::min(stride_, depth_ - block * stride_);
  }

  /// Part of a row along the reduction: one word per block, word `row * blocks + block` of the second draw.
  void sieve_row(std::uint64_t row, std::uint64_t col, std::span<double> out) const {
    const std::uint64_t begin = col / stride_;
    const std::uint64_t end = (col + out.size() - 1) / stride_ + 1;
    std::vector<std::uint32_t> words(static_cast<std::size_t>(end - begin));
    generate_words(stream_, row * blocks_ + begin, words);
    for (std::uint64_t block = begin; block < end; ++block) {
      const std::uint64_t kept =
          block * stride_ + position(words[static_cast<std::size_t>(block - begin)], block_size(block));
      const std::uint64_t from = std::max(col, block * stride_);
      const std::uint64_t to = std::min(col + out.size(), (block + 1) * stride_);
      for (std::uint64_t i = from; i < to; ++i) {
        double& value = out[static_cast<std::size_t>(i - col)];
        value = i == kept ? value : 0;
      }
    }
  }

  /// Part of a row across the reduction: every element is in a block of its own column, word
  /// `(matrix * blocks + block) * cols + column` of the second draw.
  void sieve_columns(std::uint64_t line, std::uint64_t col, std::span<double> out) const {
    const std::uint64_t matrix = line / rows_;
    const std::uint64_t block = line % rows_ / stride_;
    const std::uint64_t offset = line % rows_ % stride_;
    std::vector<std::uint32_t> words(out.size());
    generate_words(stream_, (matrix * blocks_ + block) * cols_ + col, words);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = position(words[i], block_size(block)) == offset ? out[i] : 0;
    }
  }

  bool along_rows_;
  std::uint64_t rows_;
  std::uint64_t cols_;
  std::uint64_t stride_;
  std::uint64_t depth_;
  std::uint64_t blocks_;
  WordStream stream_;
};

}  // namespace

void generate_exact(const ExactGeometry& geometry, const core::StreamId& stream, std::uint64_t first,
                    std::span<double> out) {
  check(geometry);
  fill_integers(geometry, stream, first, out);
  if (geometry.first_operand && !geometry.plan.positive && geometry.plan.stride > 1) {
    Sieve(geometry, stream).apply(first, out);
  }
}

}  // namespace numcheck::data
