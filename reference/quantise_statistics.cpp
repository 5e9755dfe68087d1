#include "reference/quantise_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/parallel.hpp"
#include "reference/nvfp4_values.hpp"

namespace numcheck::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Sums over a row of x, which are kept apart, so that their sum does not depend on threads.
struct RowSums {
  std::size_t underflows = 0, overflows = 0, saturated = 0, finite = 0;
  double error = 0, signal = 0;
};

struct BlockCounts {
  std::size_t blocks = 0;  ///< that are not all zeros
  std::size_t dead = 0;    ///< and whose codes are
};

bool has_blocks(const op::QuantizeParams& p) {
  return op::quantize_recipe(p.recipe) != op::QuantizeRecipe::tensor;
}

/// Both layouts, whichever of them the case has; the tensor's one scale is that of one block.
std::vector<op::BlockLayout> layouts_of(const op::QuantizeParams& p) {
  if (has_blocks(p)) {
    return {p.rowwise(), p.columnwise()};
  }
  const op::BlockLayout rows{.codes = "q",
                             .scales = "scale_inv",
                             .rows = p.rows,
                             .cols = p.cols,
                             .block_rows = std::max<std::int64_t>(1, p.rows),
                             .block_cols = std::max<std::int64_t>(1, p.cols)};
  op::BlockLayout turned = rows;
  turned.codes = "q_t";
  turned.codes_transposed = true;
  return {rows, turned};
}

const op::Delivered* find_delivered(std::span<const op::Delivered> outputs, std::string_view port) {
  const auto found = std::ranges::find(outputs, port, &op::Delivered::port);
  return found == outputs.end() ? nullptr : &*found;
}

/// Some rows of x, codes and scales of one layout.
class Band {
 public:
  Band(const op::FindingRequest& request, const op::BlockLayout& layout, std::size_t begin, std::size_t end)
      : layout_(layout),
        x_(op::operand_named(request.inputs, "x").data),
        codes_(*find_delivered(request.outputs, layout.codes)),
        scales_(find_delivered(request.outputs, layout.scales)->value),
        begin_(begin),
        end_(end) {}

  /// Adds to the sums of its rows, from `rows` on, and counts its blocks, of which it has whole ones.
  [[nodiscard]] BlockCounts add(RowSums* rows) const {
    const auto across = static_cast<std::size_t>(layout_.across()), cols = static_cast<std::size_t>(layout_.cols);
    const std::size_t lines = line_of(end_ - 1) - line_of(begin_) + 1;
    std::vector<char> has_element(lines * across), has_code(lines * across);
    for (std::size_t block = 0; block < across; ++block) {
      const std::size_t first = block * static_cast<std::size_t>(layout_.block_cols);
      const std::size_t last = std::min(cols, first + static_cast<std::size_t>(layout_.block_cols));
      for (std::size_t r = begin_; r < end_; ++r) {
        const Piece piece = add_piece(r, first, last, scale_of(line_of(r), block), rows[r - begin_]);
        const std::size_t at = (line_of(r) - line_of(begin_)) * across + block;
        has_element[at] = has_element[at] != 0 || piece.has_element ? 1 : 0;
        has_code[at] = has_code[at] != 0 || piece.has_code ? 1 : 0;
      }
    }
    BlockCounts counts;
    for (std::size_t i = 0; i < has_element.size(); ++i) {
      counts.blocks += has_element[i] != 0 ? 1 : 0;
      counts.dead += has_element[i] != 0 && has_code[i] == 0 ? 1 : 0;
    }
    return counts;
  }

 private:
  struct Piece {
    bool has_element = false;
    bool has_code = false;
  };

  [[nodiscard]] std::size_t line_of(std::size_t row) const {
    return row / static_cast<std::size_t>(layout_.block_rows);
  }

  [[nodiscard]] double scale_of(std::size_t line, std::size_t column) const {
    const auto down = static_cast<std::size_t>(layout_.down()), across = static_cast<std::size_t>(layout_.across());
    return scales_[layout_.scales_transposed ? column * down + line : line * across + column];
  }

  /// The part of a row that is in one block.
  [[nodiscard]] Piece add_piece(std::size_t row, std::size_t first, std::size_t last, double scale,
                                RowSums& sums) const {
    const auto rows = static_cast<std::size_t>(layout_.rows), cols = static_cast<std::size_t>(layout_.cols);
    const double largest = core::dtype_info(codes_.dtype).max_finite, beyond = largest * scale;
    const double* code = codes_.value.data() + (layout_.codes_transposed ? first * rows + row : row * cols + first);
    const std::size_t step = layout_.codes_transposed ? rows : 1;
    Piece piece;
    for (std::size_t c = first; c < last; ++c, code += step) {
      const double x = x_[row * cols + c], value = *code * scale;
      piece.has_element = piece.has_element || x != 0;
      piece.has_code = piece.has_code || *code != 0;
      sums.underflows += x != 0 && *code == 0 ? 1 : 0;
      sums.overflows += std::fabs(x) > beyond ? 1 : 0;
      sums.saturated += std::fabs(*code) == largest ? 1 : 0;
      if (const double error = value - x; std::isfinite(error)) {
        ++sums.finite;
        sums.error += error * error;
        sums.signal += x * x;
      }
    }
    return piece;
  }

  const op::BlockLayout& layout_;
  const double* x_;
  const op::Delivered& codes_;
  std::span<const double> scales_;
  std::size_t begin_, end_;
};

/// Of one layout.
class LayoutStatistics {
 public:
  LayoutStatistics(const op::BlockLayout& layout, bool has_blocks)
      : codes_(layout.codes),
        scales_(layout.scales),
        cols_(static_cast<std::size_t>(layout.cols)),
        has_blocks_(has_blocks),
        rows_(static_cast<std::size_t>(layout.rows)) {}

  /// `layout`: of these rows, the first of which is `first` of all.
  void add(const op::FindingRequest& some, const op::BlockLayout& layout, std::size_t first) {
    const op::Delivered* codes = find_delivered(some.outputs, layout.codes);
    if (codes == nullptr) {
      return;
    }
    // Whole blocks of rows; the tensor's one is not looked at.
    constexpr std::size_t kFewRows = 32;
    const std::size_t band =
        has_blocks_ && layout.block_rows > 1 ? static_cast<std::size_t>(layout.block_rows) : kFewRows;
    const auto rows = cols_ == 0 ? 0 : static_cast<std::size_t>(layout.rows);
    std::vector<BlockCounts> counts((rows + band - 1) / band);
    core::parallel_for(counts.size(), [&](std::size_t i) {
      const std::size_t begin = i * band, end = std::min(rows, begin + band);
      counts[i] = Band(some, layout, begin, end).add(rows_.data() + first + begin);
    });
    const std::scoped_lock lock(mutex_);
    is_delivered_ = true;
    for (const BlockCounts& each : counts) {
      all_.blocks += each.blocks;
      all_.dead += each.dead;
    }
    for (const double scale : find_delivered(some.outputs, layout.scales)->value) {
      smallest_ = std::min(smallest_, scale);
      largest_ = std::max(largest_, scale);
    }
  }

  void append(std::vector<op::Finding>& findings) const {
    if (!is_delivered_) {
      return;
    }
    const RowSums sums = total();
    const auto count = static_cast<double>(std::max<std::size_t>(1, rows_.size() * cols_));
    const auto add = [&](std::string name, std::string_view port, double measured, std::string text) {
      findings.push_back({std::move(name), std::string(port), measured, kInfinity, std::move(text), {}, {}});
    };
    add("underflow", codes_, static_cast<double>(sums.underflows) / count,
        "share of elements that are not 0 and whose code is");
    add("overflow", codes_, static_cast<double>(sums.overflows) / count,
        "share of elements beyond the largest number times scale_inv");
    add("saturated codes", codes_, static_cast<double>(sums.saturated) / count,
        "share of codes that are the largest number");
    if (sums.finite > 0) {
      add("mse", codes_, sums.error / static_cast<double>(sums.finite), "mean square of code scale_inv - x");
    }
    if (sums.signal > 0) {
      add("sqnr", codes_, sums.error > 0 ? 10 * std::log10(sums.signal / sums.error) : kInfinity,
          "in dB, of code scale_inv");
    }
    if (has_blocks_ && all_.blocks > 0) {
      add("dead blocks", codes_, static_cast<double>(all_.dead) / static_cast<double>(all_.blocks),
          "share of the blocks that are not all zeros, and whose codes are");
    }
    if (has_blocks_ && smallest_ <= largest_) {
      add("smallest scale_inv", scales_, smallest_, {});
      add("largest scale_inv", scales_, largest_, {});
    }
  }

 private:
  [[nodiscard]] RowSums total() const {
    RowSums sums;
    for (const RowSums& row : rows_) {
      sums.underflows += row.underflows;
      sums.overflows += row.overflows;
      sums.saturated += row.saturated;
      sums.finite += row.finite;
      sums.error += row.error;
      sums.signal += row.signal;
    }
    return sums;
  }

  std::string_view codes_, scales_;
  std::size_t cols_;
  bool has_blocks_;
  std::vector<RowSums> rows_;
  std::mutex mutex_;
  bool is_delivered_ = false;
  BlockCounts all_;
  double smallest_ = kInfinity, largest_ = -kInfinity;
};

class CastStatistics : public op::RowFindings {
 public:
  explicit CastStatistics(const op::QuantizeParams& p) {
    for (const op::BlockLayout& layout : layouts_of(p)) {
      layouts_.push_back(std::make_unique<LayoutStatistics>(layout, has_blocks(p)));
    }
  }

  void add(const op::FindingRequest& rows, std::int64_t first) override {
    const auto p = op::from_params<op::QuantizeParams>(*rows.params);
    const std::vector<op::BlockLayout> layouts = layouts_of(p);
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      if (op::quantize_recipe(p.recipe) == op::QuantizeRecipe::nvfp4) {
        layouts_[i]->add(Nvfp4Delivered(rows, p, layouts[i]).request(), layouts[i], static_cast<std::size_t>(first));
      } else {
        layouts_[i]->add(rows, layouts[i], static_cast<std::size_t>(first));
      }
    }
  }

  [[nodiscard]] std::vector<op::Finding> result(const op::FindingRequest* /*all*/) const override {
    std::vector<op::Finding> findings;
    for (const std::unique_ptr<LayoutStatistics>& layout : layouts_) {
      layout->append(findings);
    }
    return findings;
  }

 private:
  std::vector<std::unique_ptr<LayoutStatistics>> layouts_;
};

}  // namespace

std::vector<op::Finding> quantise_statistics(const op::FindingRequest& request) {
  CastStatistics statistics(op::from_params<op::QuantizeParams>(*request.params));
  statistics.add(request, 0);
  return statistics.result(&request);
}

std::unique_ptr<op::RowFindings> quantise_row_statistics(const op::Params& params, const op::Mode& /*mode*/) {
  return std::make_unique<CastStatistics>(op::from_params<op::QuantizeParams>(params));
}

}  // namespace numcheck::reference
