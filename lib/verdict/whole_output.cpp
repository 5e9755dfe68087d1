#include "verdict/whole_output.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "data/inputs.hpp"
#include "metric/reader.hpp"
#include "tolerance/gate_table.hpp"
#include "verdict/conversion.hpp"
#include "verdict/expectation.hpp"

namespace numcheck::verdict {
namespace {

using tolerance::Criterion;
using tolerance::Gate;

constexpr std::size_t kRowsPerTask = 16;
constexpr std::size_t kComputed = 64;  // elements that are not finite, at most

/// What reading an output tells: sums for every block of every row, and elements that are not finite.
class Scan {
 public:
  Scan(const op::Port& port, std::span<const std::byte> bytes, double scale)
      : port_(port), bytes_(bytes), scale_(scale), format_(core::dtype_info(port.dtype)) {
    stored_.port = &port;
    stored_.got = bytes;
    output_ = {.rows = port.batch * port.rows,
               .cols = port.cols,
               .read = [this](std::int64_t row, std::span<double> values) { read(row, values); }};
    squares_.resize(static_cast<std::size_t>(output_.rows * output_.blocks()));
    rounding_.resize(squares_.size());
  }
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  /// For a reference that reads it all.
  [[nodiscard]] const op::WholeOutput& output() const noexcept { return output_; }
  /// Where no reference does.
  void read_all() {
    core::parallel_chunks(static_cast<std::size_t>(output_.rows), kRowsPerTask,
                          [&](std::size_t, std::size_t begin, std::size_t end) {
                            std::vector<double> row(static_cast<std::size_t>(output_.cols));
                            for (std::size_t i = begin; i < end; ++i) {
                              read(static_cast<std::int64_t>(i), row);
                            }
                          });
  }

  /// sum d^2 of each block, and sum ulp^2 / 12; the latter is infinite where the output is saturated.
  [[nodiscard]] const std::vector<double>& squares() const noexcept { return squares_; }
  [[nodiscard]] const std::vector<double>& rounding() const noexcept { return rounding_; }
  [[nodiscard]] std::uint64_t unwritten() const noexcept { return unwritten_; }
  /// Of the stored numbers that are finite.
  [[nodiscard]] double largest() const noexcept { return largest_; }
  /// Sorted; those that were not written are not among them.
  [[nodiscard]] std::vector<std::int64_t> nonfinite() const {
    std::vector<std::int64_t> sorted = nonfinite_;
    std::ranges::sort(sorted);
    return sorted;
  }

 private:
  void read(std::int64_t row, std::span<double> values) {
    data::load_row(port_, bytes_, row, values);
    const auto first = static_cast<std::size_t>(row * output_.blocks());
    double most = 0;
    for (std::size_t j = 0; j < values.size(); ++j) {
      const std::size_t block = first + j / static_cast<std::size_t>(op::WholeOutput::kBlock);
      if (!std::isfinite(values[j])) {
        note(row * output_.cols + static_cast<std::int64_t>(j), std::isnan(values[j]));
      } else {
        most = std::max(most, std::fabs(values[j]));
      }
      const double ulp = core::ulp(values[j], port_.dtype) / scale_;
      const bool saturated = format_.storage_bytes == 1 && std::fabs(values[j]) >= format_.max_finite;
      values[j] /= scale_;
      squares_[block] += values[j] * values[j];
      rounding_[block] += saturated ? std::numeric_limits<double>::infinity() : ulp * ulp / 12;
    }
    const std::lock_guard lock(mutex_);
    largest_ = std::max(largest_, most);
  }
  void note(std::int64_t element, bool is_nan) {
    const std::uint64_t poison = (std::uint64_t{1} << (8 * format_.storage_bytes)) - 1;
    const bool unwritten = is_nan && metric::bits_at(stored_, element) == poison;
    const std::lock_guard lock(mutex_);
    if (unwritten) {
      ++unwritten_;
    } else if (nonfinite_.size() < kComputed) {
      nonfinite_.push_back(element);
    }
  }

  const op::Port& port_;
  std::span<const std::byte> bytes_;
  double scale_;
  const core::DtypeInfo& format_;
  metric::CompareInput stored_;
  op::WholeOutput output_;
  std::vector<double> squares_, rounding_;
  std::mutex mutex_;  ///< of what follows
  std::uint64_t unwritten_ = 0;
  double largest_ = 0;
  std::vector<std::int64_t> nonfinite_;
};

Criterion criterion_of(Gate gate, double measured, double limit, std::string source) {
  return {std::string(tolerance::gate_name(gate)), measured, limit, measured <= limit, std::move(source)};
}

/// Replaces what the sample says by what the whole output does.
void replace(std::vector<Criterion>& criteria, Gate gate, double measured) {
  const auto found = std::ranges::find(criteria, tolerance::gate_name(gate), &Criterion::name);
  found->measured = std::max(found->measured, measured);
  found->ok = found->measured <= found->limit;
}

/// How many of these elements are NaN or infinite though no admissible overflow explains it.
std::uint64_t wrongly_nonfinite(const EvaluationContext& context, const ComparedPort& compared,
                                const model::ErrorModel& model, const std::vector<op::Operand>& operands,
                                std::vector<std::int64_t> elements) {
  if (elements.empty()) {
    return 0;
  }
  const op::Reference& reference = context.group->row->reference;
  const op::ReferenceRequest request{&context.group->params, operands, {std::move(elements)}};
  const op::Values values = reference.values(request);
  const op::Yardsticks yardsticks = reference.yardsticks(request);
  const std::string_view port = compared.port().name;
  const auto& yardstick = *std::ranges::find(yardsticks.outputs, port, &op::OutputYardsticks::port);
  const Expectation expectation(context, compared, model);
  metric::CompareInput input = expectation.input();
  input.expected = std::ranges::find(values.outputs, port, &op::OutputValues::port)->value.span();
  input.magnitude = yardstick.magnitude.span();
  input.deviation = yardstick.deviation.span();
  input.terms = {};
  input.sample = &request.sample;
  input.unrounded = {};
  return metric::compare(input).nonfinite_mismatch;
}

/// Root mean square and largest of |e| / sqrt V, over all blocks that can be judged.
struct Blocks {
  double rms = 0, largest = 0;
  std::uint64_t count = 0;
};

Blocks judge_blocks(const op::Projection& projection, const Scan& scan, const model::ErrorModel& model) {
  const auto per_row = static_cast<std::size_t>(scan.output().blocks());
  const std::int64_t width = std::min(op::WholeOutput::kBlock, scan.output().cols);
  Blocks blocks;
  double sum = 0;
  for (std::size_t at = 0; at < projection.error.size(); ++at) {
    const bool last = at % per_row + 1 == per_row;
    const double columns =
        static_cast<double>(last ? scan.output().cols - static_cast<std::int64_t>(per_row - 1) * width : width);
    const double v = (model.var_second + model.var_magnitude * model.reduction) * projection.second[at] +
                     (model.var_value + model.var_coherent) * scan.squares()[at] + model.var_absolute * columns +
                     scan.rounding()[at];
    const double e = projection.error[at];
    if (!std::isfinite(e) || !std::isfinite(v) || v == 0) {
      continue;
    }
    const double square = e * e / v;
    sum += square;
    blocks.largest = std::max(blocks.largest, std::sqrt(square));
    ++blocks.count;
  }
  blocks.rms = blocks.count == 0 ? 0 : std::sqrt(sum / static_cast<double>(blocks.count));
  return blocks;
}

/// The case's amax of the output; nothing if there is none.
std::optional<double> amax_of(const EvaluationContext& context, const op::Port& output) {
  for (std::size_t i = 0; i < context.prepared->ports.size(); ++i) {
    const op::Port& port = context.prepared->ports[i];
    if (port.role == op::Role::amax && port.of == output.name) {
      return data::load_port(port, context.host[i].bytes)[0];
    }
  }
  return {};
}

/// Elements that may be the largest by magnitude: stored as the largest number, or as the one below it. As many as are computed,
/// at most.
struct Candidates {
  std::vector<std::int64_t> elements;
  bool all = true;  ///< there are no more
};

Candidates largest_elements(const op::Port& port, std::span<const std::byte> bytes, double largest) {
  constexpr std::size_t kMost = 4096;
  const double least = largest - core::ulp(largest, port.dtype);
  std::mutex mutex;
  std::vector<std::int64_t> found;
  core::parallel_chunks(static_cast<std::size_t>(port.batch * port.rows), kRowsPerTask,
                        [&](std::size_t, std::size_t begin, std::size_t end) {
                          std::vector<double> row(static_cast<std::size_t>(port.cols));
                          std::vector<std::int64_t> here;  // one more than are computed tells that there are more
                          for (std::size_t i = begin; i < end && here.size() <= kMost; ++i) {
                            data::load_row(port, bytes, static_cast<std::int64_t>(i), row);
                            for (std::size_t j = 0; j < row.size() && here.size() <= kMost; ++j) {
                              if (std::fabs(row[j]) >= least) {
                                here.push_back(static_cast<std::int64_t>(i * row.size() + j));
                              }
                            }
                          }
                          const std::lock_guard lock(mutex);
                          found.insert(found.end(), here.begin(), here.end());
                        });
  std::ranges::sort(found);
  const bool all = found.size() <= kMost;
  found.resize(std::min(found.size(), kMost));
  return {std::move(found), all};
}

/// What the largest of some elements should be, and between what it may lie: each errs by the smaller of B and kappa lambda sqrt(V).
struct LargestExpected {
  double y = 0, least = 0, most = 0;
  bool all_finite = true;  ///< otherwise nothing is too large
};

LargestExpected largest_expected(const EvaluationContext& context, const op::Port& port, const model::ErrorModel& model,
                                 const std::vector<op::Operand>& operands, const std::vector<std::int64_t>& elements) {
  const op::Reference& reference = context.group->row->reference;
  const op::ReferenceRequest request{&context.group->params, operands, {elements}};
  const op::Values values = reference.values(request);
  const op::Yardsticks yardsticks = reference.yardsticks(request);
  const core::Buffer<double>& value = std::ranges::find(values.outputs, port.name, &op::OutputValues::port)->value;
  const auto& yardstick = *std::ranges::find(yardsticks.outputs, port.name, &op::OutputYardsticks::port);
  LargestExpected largest;
  const double sigmas = tolerance::lambda_of(elements.size()) * model.kappa;
  for (std::size_t n = 0; n < elements.size(); ++n) {
    const double y = std::fabs(value[n]), a = static_cast<double>(yardstick.magnitude[n]);
    const double s = static_cast<double>(yardstick.deviation[n]);
    if (!std::isfinite(y)) {
      largest.all_finite = false;
      continue;
    }
    const double v = model.var_second * s * s + model.var_magnitude * a * a +
                     (model.var_value + model.var_coherent) * y * y + model.var_absolute;
    const double bound = model.bound_magnitude * a + model.bound_value * y + model.bound_absolute;
    const double error = std::min(bound, sigmas * std::sqrt(v));
    largest.y = std::max(largest.y, y);
    largest.least = std::max(largest.least, y - error);
    largest.most = std::max(largest.most, y + error);
  }
  return largest;
}

/// True if the amax is stored as the largest number of the output. Products with the scale may be rounded on the way.
bool is_stored_as(double amax, double largest, const op::Port& port, double scale) {
  const core::DtypeInfo& format = core::dtype_info(port.dtype);
  const auto rounded = [&](double factor) {
    return core::round_to(std::min(amax * std::fabs(scale) * factor, format.max_finite), port.dtype);
  };
  return rounded(1 - 0x1p-21) <= largest && largest <= rounded(1 + 0x1p-21);
}

/// The amax against the elements that are stored as the largest numbers: all numbers beyond the format's are stored as its
/// largest, so only their references tell an amax from another one.
Criterion judge_amax(const EvaluationContext& context, const ComparedPort& compared, const model::ErrorModel& model,
                     const std::vector<op::Operand>& operands, double amax, double stored) {
  const op::Port& port = compared.port();
  const Candidates candidates = largest_elements(port, compared.bytes(), stored);
  const LargestExpected expected = largest_expected(context, port, model, operands, candidates.elements);
  const bool is_less = amax < expected.y;
  const bool has_most = candidates.all && expected.all_finite;
  const double off = is_less || has_most ? std::fabs(amax - expected.y) : 0;
  const double ratio = off == 0 ? 0 : off / (is_less ? expected.y - expected.least : expected.most - expected.y);
  const double measured =
      is_stored_as(amax, stored, port, model.output_scale) ? ratio : std::numeric_limits<double>::infinity();
  return criterion_of(
      Gate::amax_of_all, measured, 1,
      fmt::format("the amax is {:.9g}, the largest stored number is {:.9g}; {} of the elements stored as that "
                  "or the number below {} {:.9g}",
                  amax, stored, candidates.all ? "the largest" : "the first 4096",
                  candidates.all ? "is" : "have at least", expected.y));
}

}  // namespace

void judge_whole_output(const EvaluationContext& context, const worker::RunReport& run, const ComparedPort& compared,
                        const model::ErrorModel& model, const metric::Statistics& sample,
                        std::vector<Criterion>& criteria) {
  constexpr double kFewest = 32;
  const op::Port& port = compared.port();
  Scan scan(port, compared.bytes(), model.output_scale);
  const op::Reference& reference = context.group->row->reference;
  const JudgedOperands operands(context, run);
  std::optional<op::Projection> projection;
  if (reference.project != nullptr && !model.exact) {
    const op::ReferenceRequest request{&context.group->params, operands.get(), {}};
    projection = reference.project(request, scan.output());
  }
  if (!projection) {
    scan.read_all();
  }
  replace(criteria, Gate::unwritten, static_cast<double>(scan.unwritten()));
  const std::vector<std::int64_t> nonfinite = scan.nonfinite();
  replace(criteria, Gate::pattern,
          static_cast<double>(wrongly_nonfinite(context, compared, model, operands.get(), nonfinite)));
  if (projection) {
    const Blocks blocks = judge_blocks(*projection, scan, model);
    const std::string source =
        fmt::format("{}; {} of {} blocks can be judged", model.source, blocks.count, projection->error.size());
    if (static_cast<double>(blocks.count) >= kFewest * sample.copies) {
      criteria.push_back(criterion_of(Gate::block_rms, blocks.rms, model.kappa, source));
    }
    if (blocks.count > 0) {
      criteria.push_back(
          criterion_of(Gate::block_largest, blocks.largest, tolerance::lambda_of(blocks.count) * model.kappa, source));
    }
  }
  const std::optional<double> amax = amax_of(context, port);
  if (amax && nonfinite.empty() && scan.unwritten() == 0) {
    criteria.push_back(judge_amax(context, compared, model, operands.get(), *amax, scan.largest()));
  }
}

}  // namespace numcheck::verdict
