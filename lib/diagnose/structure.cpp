// Hypotheses about places: rows or columns that are elsewhere, and a few elements that are wrong among right ones.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/parallel.hpp"
#include "diagnose/hypothesis.hpp"
#include "metric/wrong_elements.hpp"
#include "report/views/wrong_sentence.hpp"
#include "report/wrong_member.hpp"

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

/// Which line of what is expected each line of what is delivered looks like, itself if none fits much better; nothing if all
/// are where they belong. Candidates are those whose weighted sums are next to the line's.
std::optional<std::vector<std::size_t>> sources(const Evidence& evidence, const Lines& lines) {
  const std::span<const double> y = evidence.values.value.span(), d = evidence.delivered;
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
  for (std::size_t line = 0; line < lines.count; ++line) {
    keys[line] = {key(y, line), line};
  }
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
  return moved ? std::optional(std::move(from)) : std::nullopt;
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

/// Whether every line is somewhere.
bool is_permutation(const std::vector<std::size_t>& from) {
  std::vector<bool> found(from.size());
  for (const std::size_t line : from) {
    found[line] = true;
  }
  return std::ranges::find(found, false) == found.end();
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
  if (const Lines lines{rows, cols, cols, 1}; rows > 1 && cols >= kFewest) {
    if (auto from = sources(evidence, lines); from.has_value()) {
      all.push_back(moved_lines(evidence, lines, std::move(*from), "row"));
    }
  }
  if (const Lines lines{cols, rows, 1, cols}; cols > 1 && rows >= kFewest) {
    if (auto from = sources(evidence, lines); from.has_value()) {
      all.push_back(moved_lines(evidence, lines, std::move(*from), "column"));
    }
  }
  return all;
}

/// What wrong elements hold, if they all hold it.
std::string common_content(const Evidence& evidence) {
  std::optional<double> first;
  bool same = true;
  for (std::size_t i = 0; i < evidence.is_wrong.size(); ++i) {
    if (evidence.is_wrong[i] != 0) {
      const double d = evidence.delivered[i];
      same = same && (!first.has_value() || d == *first || (std::isnan(d) && std::isnan(*first)));
      first = first.value_or(d);
    }
  }
  if (!first.has_value() || !same) {
    return {};
  }
  return std::isnan(*first) ? "NaN" : fmt::format("{:.6g}", *first);
}

/// The wrong elements, and with them, if all hold the same, those that do so by themselves are right: where a tile is 0, small
/// results are.
std::vector<std::uint8_t> marks_of(const Evidence& evidence, bool hold_the_same) {
  std::vector<std::uint8_t> marks(evidence.is_wrong.begin(), evidence.is_wrong.end());
  const auto first = std::ranges::find(marks, std::uint8_t{1});
  if (!hold_the_same || first == marks.end()) {
    return marks;
  }
  const double content = evidence.delivered[static_cast<std::size_t>(first - marks.begin())];
  for (std::size_t i = 0; i < marks.size(); ++i) {
    marks[i] = marks[i] != 0 || evidence.delivered[i] == content ? 1 : 0;
  }
  return marks;
}

/// The output with the expected numbers in place of the marked ones.
SharedBytes mended(const Evidence& evidence, std::span<const std::uint8_t> marks) {
  const op::Port port = port_of(evidence);
  const SharedBytes& given = evidence.subject.outputs.find(evidence.port)->second;
  auto bytes = std::make_shared<core::Buffer<std::byte>>(given->size());
  std::ranges::copy(given->span(), bytes->span().begin());
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] != 0) {
      const double expected = core::round_to(evidence.values.value[i], port.dtype);
      core::encode(std::span(&expected, 1), port.dtype, bytes->span().subspan(i * element, element));
    }
  }
  return bytes;
}

/// Whether the op has gates of its own, which would fail for these elements whatever is expected of them.
bool has_own_gates(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const bool is_attention = c.op->name == "attention_fwd" || c.op->name == "attention_bwd";
  return !is_attention && !prepare::find_row(evidence.subject.catalog, c.op->name)->reference.gates.empty();
}

/// A trial that leaves the wrong elements as they are, or mends them.
Hypothesis wrong_elements(const Evidence& evidence, const metric::WrongElements& places, std::string name,
                          const std::string& content) {
  std::string cause = fmt::format("{}: {}", evidence.port, report::views::wrong_sentence(report::wrong_json(places)));
  cause += content.empty() ? ", and the others are right" : fmt::format(", and all of these are {}", content);
  Trial trial = as_declared(evidence.subject);
  std::vector<std::uint8_t> wrong = marks_of(evidence, !content.empty());
  const bool is_whole = port_of(evidence).scaled_by.empty() && output_scale(evidence.subject, evidence.port) == 1 &&
                        evidence.sample.all();
  if (has_own_gates(evidence) && is_whole) {
    trial.stored.emplace(evidence.port, mended(evidence, wrong));
  } else {
    trial.then =
        change_of(evidence, [marks = std::move(wrong),
                             delivered = std::vector<double>(evidence.delivered.begin(), evidence.delivered.end())](
                                op::OutputValues& output, op::OutputYardsticks*) {
          for (std::size_t i = 0; i < marks.size(); ++i) {
            output.value[i] = marks[i] != 0 ? delivered[i] : output.value[i];
          }
        });
  }
  Hypothesis all{.name = std::move(name),
                 .family = std::string(kPlaces),
                 .cause = std::move(cause),
                 .remedy =
                     "Look at what they have in common: a tile that is not written or written twice, a race, memory "
                     "that something else writes to, or a head, row or column that is computed in another way.",
                 .trial = std::move(trial),
                 .shared_cause = fmt::format("some elements of {} are wrong, and the others right", evidence.port)};
  if (!content.empty()) {
    all.remedy = "Look for elements that are not written, or are masked by mistake.";
    all.shared_cause = fmt::format("some elements of {} are all {}", evidence.port, content);
  }
  return all;
}

/// Wrong elements that are all the same: of the whole output, or of a part of it.
std::vector<Hypothesis> wrong_alike(const Evidence& evidence, bool whole) {
  const auto wrong = static_cast<std::size_t>(std::ranges::count(evidence.is_wrong, std::uint8_t{1}));
  const std::string content = common_content(evidence);
  constexpr double kNearlyAll = 0.99;
  const bool nearly_all = static_cast<double>(wrong) > kNearlyAll * static_cast<double>(evidence.is_wrong.size());
  // NaN is what becomes of an overflow, too, which says more.
  if (wrong < 2 || content.empty() || whole != (nearly_all && content != "NaN")) {
    return {};
  }
  Hypothesis found = wrong_elements(evidence, metric::locate(evidence.is_wrong, port_of(evidence), evidence.sample),
                                    "elements_all_" + content, content);
  if (nearly_all) {
    found.family = kOneNumber;
  }
  return {std::move(found)};
}

std::vector<Hypothesis> all_alike(const Evidence& evidence) {
  return wrong_alike(evidence, true);
}

std::vector<Hypothesis> some_alike(const Evidence& evidence) {
  return wrong_alike(evidence, false);
}

/// Tiles that are wrong, beside others that are not. Of an output that is wrong everywhere, a small tile may be right by
/// accident, and others are in part: where most elements are wrong, their tiles are wrong throughout, and a part of the output
/// is not.
bool has_wrong_tiles(const metric::WrongElements& places) {
  constexpr double kThroughout = 0.99, kPart = 1.0 / 4;
  if (!places.tiles.has_value()) {
    return false;
  }
  const auto area = static_cast<double>(places.tiles->touched * places.tiles->size * places.tiles->size);
  const auto all = static_cast<double>(places.of), wrong = static_cast<double>(places.count);
  return 2 * places.count <= places.of || (wrong >= kThroughout * std::min(all, area) && wrong <= (1 - kPart) * all);
}

std::vector<Hypothesis> wrong_places(const Evidence& evidence) {
  const auto wrong = static_cast<std::size_t>(std::ranges::count(evidence.is_wrong, std::uint8_t{1}));
  const metric::WrongElements places = metric::locate(evidence.is_wrong, port_of(evidence), evidence.sample);
  // Wrong elements that lie anywhere are of an arithmetic that is wrong everywhere: only few, whole lines and whole tiles say
  // something, and what they all hold.
  constexpr std::size_t kFew = 16;
  constexpr double kNearlyAll = 0.9;
  const auto fills = [&](const metric::WrongLines& lines, std::int64_t length) {
    return 2 * lines.touched <= lines.of &&
           static_cast<double>(wrong) > kNearlyAll * static_cast<double>(lines.touched * length);
  };
  const op::Port port = port_of(evidence);
  const bool are_few = wrong <= kFew && 2 * wrong <= evidence.is_wrong.size();
  // A block of any size that is wrong throughout, beside elements that are not. Rows or columns that are wrong from some place on
  // are what a mask or a window does, if they are many.
  const auto block = static_cast<std::size_t>(places.matrices.touched * places.rows.touched * places.columns.touched);
  const bool are_lines = places.rows.touched == places.rows.of || places.columns.touched == places.columns.of;
  const bool is_block =
      places.rows.range_count == 1 && places.columns.range_count == 1 &&
      static_cast<double>(wrong) > kNearlyAll * static_cast<double>(block) &&
      block + std::max(kFew, evidence.is_wrong.size() / (are_lines ? 4 : kFew)) <= evidence.is_wrong.size();
  const bool is_place = are_few || is_block || has_wrong_tiles(places) || fills(places.rows, port.cols) ||
                        fills(places.columns, port.batch * port.rows);
  if (wrong == 0 || !is_place) {
    return {};
  }
  return {
      wrong_elements(evidence, places, "some_elements_wrong", wrong == 1 ? std::string() : common_content(evidence))};
}

constexpr std::array kRows = {
    CatalogueRow{"rows_moved, columns_moved", "rows or columns that hold those of others", &lines_elsewhere,
                 Stage::first, true},
    CatalogueRow{"elements_all_VALUE", "an output that is one number", &all_alike, Stage::first, true},
    CatalogueRow{"elements_all_VALUE", "wrong elements that all hold the same", &some_alike, Stage::last_resort, true},
    CatalogueRow{"some_elements_wrong", "few wrong elements, lines or tiles among right ones", &wrong_places,
                 Stage::last_resort, true}};

}  // namespace

std::span<const CatalogueRow> structure_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
