// Hypotheses about elements: some that are wrong among right ones, and outputs that are all one number.
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "diagnose/hypothesis.hpp"
#include "metric/wrong_elements.hpp"
#include "report/views/wrong_sentence.hpp"
#include "report/wrong_member.hpp"

namespace numcheck::diagnose {
namespace {

/// What these elements hold, if they all hold it.
std::string common_content(const Evidence& evidence, std::span<const std::uint8_t> marks) {
  std::optional<double> first;
  bool same = true;
  for (std::size_t i = 0; i < marks.size() && same; ++i) {
    if (marks[i] != 0) {
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
std::vector<std::uint8_t> marks_of(const Evidence& evidence, std::vector<std::uint8_t> marks, bool hold_the_same) {
  const auto first = std::ranges::find(marks, std::uint8_t{1});
  if (!hold_the_same || first == marks.end() || evidence.values.unpredictable) {
    return marks;
  }
  const double content = evidence.delivered[static_cast<std::size_t>(first - marks.begin())];
  for (std::size_t i = 0; i < marks.size(); ++i) {
    marks[i] = marks[i] != 0 || evidence.delivered[i] == content ? 1 : 0;
  }
  return marks;
}

/// The output with what is expected, or might have been drawn, in place of the marked elements.
SharedBytes mended(const Evidence& evidence, std::span<const std::uint8_t> marks) {
  const op::Port port = port_of(evidence);
  const SharedBytes& given = evidence.subject.outputs.find(evidence.port)->second;
  auto bytes = std::make_shared<core::Buffer<std::byte>>(given->size());
  std::ranges::copy(given->span(), bytes->span().begin());
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] != 0) {
      const double right = evidence.possible.empty() ? evidence.values.value[i] : evidence.possible[i];
      const double expected = core::round_to(right, port.dtype);
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

/// Which elements are wrong. Of what is drawn, all are where all are the same, whichever numbers could have been drawn.
std::vector<std::uint8_t> wrong_marks(const Evidence& evidence) {
  std::vector<std::uint8_t> marks(evidence.is_wrong.begin(), evidence.is_wrong.end());
  if (!evidence.values.unpredictable) {
    return marks;
  }
  const std::vector<std::uint8_t> all(evidence.delivered.size(), 1);
  return common_content(evidence, all).empty() ? marks : all;
}

/// A trial that leaves the wrong elements as they are, or mends them.
Hypothesis wrong_elements(const Evidence& evidence, const std::vector<std::uint8_t>& marks, std::string name,
                          const std::string& content, bool nearly_all = false) {
  const metric::WrongElements places = metric::locate(marks, port_of(evidence), evidence.sample);
  std::string cause = fmt::format("{}: {}", evidence.port, report::views::wrong_sentence(report::wrong_json(places)));
  cause += content.empty() ? ", and the others are right" : fmt::format(", and all of these are {}", content);
  Trial trial = as_declared(evidence.subject);
  std::vector<std::uint8_t> wrong = marks_of(evidence, marks, !content.empty());
  const bool is_whole = port_of(evidence).scaled_by.empty() && output_scale(evidence.subject, evidence.port) == 1 &&
                        evidence.sample.all();
  const bool is_one_draw = evidence.values.unpredictable && nearly_all;  // nothing is left to be mended
  if (has_own_gates(evidence) && is_whole && !is_one_draw) {
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
  const std::vector<std::uint8_t> marks = wrong_marks(evidence);
  const auto wrong = static_cast<std::size_t>(std::ranges::count(marks, std::uint8_t{1}));
  const std::string content = common_content(evidence, marks);
  constexpr double kNearlyAll = 0.99;
  const bool nearly_all = static_cast<double>(wrong) > kNearlyAll * static_cast<double>(marks.size());
  // NaN also comes of an overflow, and draws that are all possible come of a faulty generator, which says more.
  const bool is_possible = evidence.values.unpredictable && evidence.possible.empty();
  if (wrong < 2 || content.empty() || whole != (nearly_all && content != "NaN" && !is_possible)) {
    return {};
  }
  Hypothesis found = wrong_elements(evidence, marks, "elements_all_" + content, content, nearly_all);
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

std::vector<Hypothesis> wrong_places(const Evidence& evidence) {
  const std::vector<std::uint8_t> marks(evidence.is_wrong.begin(), evidence.is_wrong.end());
  const auto wrong = static_cast<std::size_t>(std::ranges::count(marks, std::uint8_t{1}));
  const std::string content = wrong == 1 ? std::string() : common_content(evidence, marks);
  // Where most of an output is wrong, places are no cause, whatever shape they have: something else is wrong with it. Beside a
  // first cause, less does: that mends some elements by chance (ReLU those that another function takes for nearly 0).
  const std::size_t times = evidence.subject.known == nullptr ? 2 : 4;
  if (wrong == 0 || (content.empty() && times * wrong > marks.size())) {
    return {};
  }
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
  const bool are_few = wrong <= kFew && 2 * wrong <= marks.size();
  // A block of any size that is wrong throughout, beside elements that are not. Rows or columns that are wrong from some place on
  // are what a mask or a window does, if they are many.
  const auto block = static_cast<std::size_t>(places.matrices.touched * places.rows.touched * places.columns.touched);
  const bool are_lines = places.rows.touched == places.rows.of || places.columns.touched == places.columns.of;
  const bool is_block = places.rows.range_count == 1 && places.columns.range_count == 1 &&
                        static_cast<double>(wrong) > kNearlyAll * static_cast<double>(block) &&
                        block + std::max(kFew, marks.size() / (are_lines ? 4 : kFew)) <= marks.size();
  const bool is_place = are_few || is_block || places.tiles.has_value() || fills(places.rows, port.cols) ||
                        fills(places.columns, port.batch * port.rows);
  if (!is_place) {
    return {};
  }
  return {wrong_elements(evidence, marks, "some_elements_wrong", content)};
}

/// Where element i of the output belongs if its matrices are stored in another way.
using Place = std::function<std::size_t(std::size_t)>;

/// Those wrong elements that hold what belongs to another place; empty unless these are nearly all of them.
std::vector<std::uint8_t> marks_of_moved(const Evidence& evidence, const Place& source) {
  constexpr double kMuchNearer = 0.125, kNearlyAll = 0.99;
  constexpr std::size_t kFewest = 16;  // fewer look like others by chance
  std::vector<std::uint8_t> marks(evidence.is_wrong.size());
  std::size_t wrong = 0, moved = 0;
  const core::Dtype dtype = port_of(evidence).dtype;
  const double scale = output_scale(evidence.subject, evidence.port);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const double d = evidence.delivered[i];
    const double own = std::abs(d - evidence.values.value[i]), there = std::abs(d - evidence.values.value[source(i)]);
    const bool is_near = there < kMuchNearer * own || there <= core::ulp(d * scale, dtype) / scale;
    const bool is_there = evidence.is_wrong[i] != 0 && there < own && is_near;
    marks[i] = is_there ? 1 : 0;
    wrong += evidence.is_wrong[i] != 0 ? 1 : 0;
    moved += is_there ? 1 : 0;
  }
  const bool are_most = moved >= kFewest && static_cast<double>(moved) >= kNearlyAll * static_cast<double>(wrong);
  if (!are_most) {
    marks.clear();
  }
  return marks;
}

/// What is expected of the marked elements is what is expected at their places.
decltype(Trial::then) moved_in_part(const Evidence& evidence, std::vector<std::uint8_t> marks, Place source) {
  return change_of(evidence, [marks = std::move(marks), source = std::move(source)](op::OutputValues& output,
                                                                                    op::OutputYardsticks* yardsticks) {
    const auto move = [&]<class T>(core::Buffer<T>& numbers) {
      const std::vector<T> before(numbers.span().begin(), numbers.span().end());
      for (std::size_t i = 0; i < before.size(); ++i) {
        numbers[i] = marks[i] != 0 ? before[source(i)] : before[i];
      }
    };
    move(output.value);
    move(output.magnitude);
    move(output.deviation);
    move(output.terms);
    if (yardsticks != nullptr) {
      move(yardsticks->magnitude);
      move(yardsticks->deviation);
    }
  });
}

/// A part of the output that is transposed, or counted from the end, where the rest is not: a tile that a layout was wrong for.
std::vector<Hypothesis> partly_rearranged(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  const auto rows = static_cast<std::size_t>(port.rows), cols = static_cast<std::size_t>(port.cols);
  std::vector<Hypothesis> all;
  if (!evidence.sample.all() || evidence.values.unpredictable || rows < 2 || cols < 2) {
    return all;
  }
  struct Way {
    std::string_view name, belongs;
    Place source;
  };
  const std::array ways = {
      Way{"transposed", "at the same place of the transposed matrix",
          [rows, cols](std::size_t i) {
            const std::size_t first = i / (rows * cols) * rows * cols, in = i - first;
            return first + in % cols * rows + in / cols;
          }},
      Way{"reversed", "opposite, as far from the last element as they are from the first", [rows, cols](std::size_t i) {
            const std::size_t first = i / (rows * cols) * rows * cols;
            return first + rows * cols - 1 - (i - first);
          }}};
  for (const Way& way : ways) {
    const std::vector<std::uint8_t> marks = marks_of_moved(evidence, way.source);
    if (marks.empty()) {
      continue;
    }
    Hypothesis found = wrong_elements(evidence, marks, fmt::format("{}_partly_{}", evidence.port, way.name), {});
    const metric::WrongElements places = metric::locate(marks, port, evidence.sample);
    found.family = {};
    found.cause = fmt::format("{}: these hold what belongs {}: {}", evidence.port, way.belongs,
                              report::views::wrong_sentence(report::wrong_json(places)));
    found.remedy = "Look for a tile that another layout is used for, or that is written to or read from elsewhere.";
    found.shared_cause = fmt::format("a part of {} is {}", evidence.port, way.name);
    if (found.trial.stored.empty()) {
      found.trial.then = moved_in_part(evidence, marks, way.source);
    }
    all.push_back(std::move(found));
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"OUTPUT_partly_transposed, OUTPUT_partly_reversed",
                 "a part of the output's matrices transposed, or in reverse order, and the rest right",
                 &partly_rearranged, Stage::last_resort, true},
    CatalogueRow{"elements_all_VALUE", "an output that is one number", &all_alike, Stage::first, true},
    CatalogueRow{"elements_all_VALUE", "wrong elements that all hold the same", &some_alike, Stage::last_resort, true},
    CatalogueRow{"some_elements_wrong", "few wrong elements, lines or tiles among right ones", &wrong_places,
                 Stage::last_resort, true}};

}  // namespace

std::span<const CatalogueRow> wrong_place_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
