// Hypotheses about lines: rows or columns that are elsewhere.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {
namespace {

/// Lines of the output, all of its rows or the columns of a single matrix.
struct Lines {
  std::size_t count = 0, length = 0, line_step = 1, element_step = 1;

  [[nodiscard]] std::size_t at(std::size_t line, std::size_t i) const noexcept {
    return line * line_step + i * element_step;
  }
};

/// The lines that have wrong elements; all of them if no element is wrong by itself. Others may look like one another by
/// chance, where they are small.
std::vector<bool> suspects(const Evidence& evidence, const Lines& lines) {
  std::vector<bool> found(lines.count);
  for (std::size_t line = 0; line < lines.count; ++line) {
    for (std::size_t i = 0; i < lines.length && !found[line]; ++i) {
      found[line] = evidence.is_wrong[lines.at(line, i)] != 0;
    }
  }
  if (std::ranges::find(found, true) == found.end()) {
    found.assign(lines.count, true);
  }
  return found;
}

/// What is expected, as the output stores it: of lines that differ by little, rounding to 16 or 8 bits hides which is which.
core::Buffer<double> as_stored(const Evidence& evidence) {
  const core::Dtype dtype = port_of(evidence).dtype;
  const core::Overflow overflow = core::is_fp8(dtype) ? core::Overflow::saturate : core::Overflow::ieee;
  const double scale = output_scale(evidence.subject, evidence.port);
  const bool is_rounded = core::dtype_info(dtype).storage_bytes <= 2 && port_of(evidence).scaled_by.empty();
  const std::span<const double> expected = evidence.values.value.span();
  core::Buffer<double> stored(expected.size());
  constexpr std::size_t kPerTask = std::size_t{1} << 16;
  core::parallel_chunks(expected.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      stored[i] = is_rounded ? core::round_to(expected[i] * scale, dtype, overflow) / scale : expected[i];
    }
  });
  return stored;
}

/// Whether every line is somewhere.
bool is_permutation(const std::vector<std::size_t>& from) {
  std::vector<bool> found(from.size());
  for (const std::size_t line : from) {
    found[line] = true;
  }
  return std::ranges::find(found, false) == found.end();
}

/// Whether all numbers of a line are the same: of a few dozens, some other line has that one by chance.
bool is_one_number(std::span<const double> d, const Lines& lines, std::size_t line) {
  for (std::size_t i = 1; i < lines.length; ++i) {
    if (d[lines.at(line, i)] != d[lines.at(line, 0)]) {
      return false;
    }
  }
  return lines.length > 1;
}

/// Lines of one number are taken to be moved only if all are somewhere. False if nothing is left.
bool leave_single_numbers(std::span<const double> d, const Lines& lines, std::vector<std::size_t>& from) {
  bool moved = false;
  const bool all_somewhere = is_permutation(from);
  for (std::size_t line = 0; line < from.size(); ++line) {
    if (!all_somewhere && from[line] != line && is_one_number(d, lines, line)) {
      from[line] = line;
    }
    moved = moved || from[line] != line;
  }
  return moved;
}

/// Which line of what is expected each line of what is delivered looks like, itself if none fits much better; nothing if all
/// are where they belong. Candidates are those whose weighted sums are next to the line's.
std::optional<std::vector<std::size_t>> sources(const Evidence& evidence, std::span<const double> y,
                                                const Lines& lines) {
  const std::span<const double> d = evidence.delivered;
  std::vector<double> weight(lines.length);
  std::vector<std::pair<double, std::size_t>> keys(lines.count);
  for (std::size_t i = 0; i < lines.length; ++i) {
    // Weights without a pattern: the fractions of multiples of the golden ratio, around 0.
    const double turns = static_cast<double>(i + 1) * 0.6180339887498949;
    weight[i] = turns - std::floor(turns) - 0.5;
  }
  const auto key = [&](std::span<const double> values, std::size_t line) {
    double sum = 0;
    for (std::size_t i = 0; i < lines.length; ++i) {
      const double x = values[lines.at(line, i)];
      sum += std::isfinite(x) ? weight[i] * x : 0;  // keys are sorted, which NaN must not be
    }
    return sum;
  };
  core::parallel_for(lines.count, [&](std::size_t line) { keys[line] = {key(y, line), line}; });
  std::ranges::sort(keys);
  // Beyond `enough`, how far it is does not matter.
  const auto distance = [&](std::size_t line, std::size_t from, double enough) {
    double sum = 0;
    for (std::size_t i = 0; i < lines.length && !(sum > enough); ++i) {
      sum += std::pow(d[lines.at(line, i)] - y[lines.at(from, i)], 2);
    }
    return sum;
  };
  std::vector<std::size_t> from(lines.count);
  std::atomic<bool> moved = false;
  const std::vector<bool> is_suspect = suspects(evidence, lines);
  core::parallel_for(lines.count, [&](std::size_t line) {
    from[line] = line;
    if (!is_suspect[line]) {
      return;
    }
    const double own = distance(line, line, std::numeric_limits<double>::infinity());
    const auto near = std::ranges::lower_bound(keys, std::pair{key(d, line), std::size_t{0}});
    double best = own;
    constexpr std::ptrdiff_t kBeside = 16;  // keys that rounding may have put in between
    for (std::ptrdiff_t step = -kBeside; step < kBeside; ++step) {
      const std::ptrdiff_t place = near - keys.begin() + step;
      if (place >= 0 && place < static_cast<std::ptrdiff_t>(keys.size())) {
        const std::size_t other = keys[static_cast<std::size_t>(place)].second;
        constexpr double kMuchLess = 0.01;
        const double there = distance(line, other, std::min(kMuchLess * own, best));
        if (there < kMuchLess * own && there < best) {
          best = there;
          from[line] = other;
          moved = true;
        }
      }
    }
  });
  return moved && leave_single_numbers(d, lines, from) ? std::optional(std::move(from)) : std::nullopt;
}

template <class T>
void move_lines(core::Buffer<T>& values, const Lines& lines, const std::vector<std::size_t>& from) {
  if (values.empty()) {
    return;
  }
  core::Buffer<T> moved(values.size());
  std::ranges::copy(values.span(), moved.data());
  for (std::size_t line = 0; line < lines.count; ++line) {
    for (std::size_t i = 0; i < lines.length; ++i) {
      moved[lines.at(line, i)] = values[lines.at(from[line], i)];
    }
  }
  values = std::move(moved);
}

/// "rows 3 and 7 are exchanged", "40 of 40 rows hold what belongs 3 rows further on".
std::string moved_text(const std::vector<std::size_t>& from, std::string_view what) {
  std::vector<std::size_t> moved;
  for (std::size_t line = 0; line < from.size(); ++line) {
    if (from[line] != line) {
      moved.push_back(line);
    }
  }
  if (moved.size() == 2 && from[moved[0]] == moved[1] && from[moved[1]] == moved[0]) {
    return fmt::format("{}s {} and {} are exchanged", what, moved[0], moved[1]);
  }
  const auto shift_of = [&from](std::size_t line) { return (from[line] + from.size() - line) % from.size(); };
  if (std::ranges::all_of(moved, [&](std::size_t line) { return shift_of(line) == shift_of(moved[0]); })) {
    const std::size_t shift = shift_of(moved[0]), back = from.size() - shift;
    return fmt::format("{} of {} {}s hold what belongs {} {}s further {}", moved.size(), from.size(), what,
                       std::min(shift, back), what, back < shift ? "back" : "on");
  }
  return fmt::format("{} of {} {}s hold what belongs to other {}s (the first: {} holds {})", moved.size(), from.size(),
                     what, what, moved[0], from[moved[0]]);
}

/// What is delivered, with each line where it belongs.
SharedBytes put_back(const Evidence& evidence, const Lines& lines, const std::vector<std::size_t>& from) {
  const core::Buffer<std::byte>& bytes = *evidence.subject.outputs.find(evidence.port)->second;
  const auto element = static_cast<std::size_t>(core::dtype_info(port_of(evidence).dtype).storage_bytes);
  auto stored = std::make_shared<core::Buffer<std::byte>>(bytes.size());
  for (std::size_t line = 0; line < lines.count; ++line) {
    for (std::size_t i = 0; i < lines.length; ++i) {
      std::memcpy(stored->data() + lines.at(from[line], i) * element, bytes.data() + lines.at(line, i) * element,
                  element);
    }
  }
  return stored;
}

/// What is expected, moved likewise.
decltype(Trial::then) moved_by(const Evidence& evidence, const Lines& lines, std::vector<std::size_t> from) {
  return change_of(evidence,
                   [lines, from = std::move(from)](op::OutputValues& output, op::OutputYardsticks* yardsticks) {
                     move_lines(output.value, lines, from);
                     move_lines(output.magnitude, lines, from);
                     move_lines(output.deviation, lines, from);
                     move_lines(output.terms, lines, from);
                     if (yardsticks != nullptr) {
                       move_lines(yardsticks->magnitude, lines, from);
                       move_lines(yardsticks->deviation, lines, from);
                     }
                   });
}

Hypothesis moved_lines(const Evidence& evidence, const Lines& lines, std::vector<std::size_t> from,
                       std::string_view what) {
  Trial trial = as_declared(evidence.subject);
  std::string cause = fmt::format("{}: {}", evidence.port, moved_text(from, what));
  // What is put back is judged like any other result. Block scales are not moved, and of lines that nobody has, nothing is
  // known.
  if (is_permutation(from) && port_of(evidence).scaled_by.empty()) {
    trial.stored.insert_or_assign(std::string(evidence.port), put_back(evidence, lines, from));
  } else {
    trial.then = moved_by(evidence, lines, std::move(from));
  }
  return {fmt::format("{}s_moved", what),
          {},
          std::move(cause),
          "Look for an index, a permutation or a map of heads that is off, or halves that are exchanged.",
          std::move(trial)};
}

std::vector<Hypothesis> lines_elsewhere(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  const auto rows = static_cast<std::size_t>(port.batch * port.rows), cols = static_cast<std::size_t>(port.cols);
  std::vector<Hypothesis> all;
  constexpr std::size_t kFewest = 4;  // elements of a line, of which fewer look alike by chance
  if (!evidence.sample.all()) {
    return all;
  }
  const core::Buffer<double> expected = as_stored(evidence);
  if (const Lines lines{rows, cols, cols, 1}; rows > 1 && cols >= kFewest) {
    if (auto from = sources(evidence, expected.span(), lines); from.has_value()) {
      all.push_back(moved_lines(evidence, lines, std::move(*from), "row"));
    }
  }
  if (const Lines lines{cols, rows, 1, cols}; cols > 1 && rows >= kFewest) {
    if (auto from = sources(evidence, expected.span(), lines); from.has_value()) {
      all.push_back(moved_lines(evidence, lines, std::move(*from), "column"));
    }
  }
  return all;
}

constexpr std::array kRows = {CatalogueRow{"rows_moved, columns_moved", "rows or columns that hold those of others",
                                           &lines_elsewhere, Stage::first, true}};

}  // namespace

std::span<const CatalogueRow> moved_line_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
