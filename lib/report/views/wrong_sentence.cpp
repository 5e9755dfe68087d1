#include "report/views/wrong_sentence.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

std::int64_t whole(const json& object, const char* member) {
  return object.at(member).get<std::int64_t>();
}

std::string range_text(const json& range) {
  return range.at(0) == range.at(1) ? range.at(0).dump() : fmt::format("{}-{}", range.at(0).dump(), range.at(1).dump());
}

/// "rows 0 and 32", "the last row", "rows 64-127", "2 of every 8 rows from 0", "17 of 64 rows".
std::string lines_text(const json& lines, std::string_view noun, std::string_view plural) {
  constexpr std::size_t kNamed = 4;
  const json& ranges = lines.at("ranges");
  const std::int64_t touched = whole(lines, "touched"), of = whole(lines, "of"), step = whole(lines, "step");
  if (step > 0) {
    const std::int64_t first = ranges.at(0).at(0).get<std::int64_t>();
    const std::int64_t length = ranges.at(0).at(1).get<std::int64_t>() - first + 1;
    return fmt::format("{} of every {} {} from {} on", length, step, plural, first);
  }
  if (ranges.size() == 1 && ranges.at(0).at(1).get<std::int64_t>() == of - 1) {
    return touched == 1 ? fmt::format("the last {} ({})", noun, of - 1)
                        : fmt::format("the last {} {} ({})", touched, plural, range_text(ranges.at(0)));
  }
  if (whole(lines, "range_count") <= static_cast<std::int64_t>(kNamed)) {
    std::vector<std::string> names;
    for (const json& range : ranges) {
      names.push_back(range_text(range));
    }
    const std::string last = names.back();
    names.pop_back();
    return fmt::format("{} {}{}{}", touched == 1 ? noun : plural, fmt::join(names, ", "), names.empty() ? "" : " and ",
                       last);
  }
  return fmt::format("{} of {} {}, the first being {}", touched, of, plural, ranges.at(0).at(0).dump());
}

bool is_partial(const json& lines) {
  return whole(lines, "touched") < whole(lines, "of");
}

/// Whether it says something that wrong elements lie in these rows. Of scattered elements it does not: few lie in each row,
/// and most rows have some.
bool is_telling(const json& lines, std::int64_t wrong, bool filled) {
  constexpr std::int64_t kFewRanges = 4, kManyInEach = 4;
  const std::int64_t touched = whole(lines, "touched");
  const bool can_be_named = whole(lines, "range_count") <= kFewRanges || whole(lines, "step") > 0;
  return is_partial(lines) &&
         (filled || (2 * touched <= whole(lines, "of") && (can_be_named || wrong >= kManyInEach * touched)));
}

std::string place_of(const json& tile, bool batched) {
  const json& first = tile.at("first");
  return batched ? fmt::format("[{},{},{}]", first.at(0).dump(), first.at(1).dump(), first.at(2).dump())
                 : fmt::format("[{},{}]", first.at(1).dump(), first.at(2).dump());
}

}  // namespace

std::string wrong_sentence(const json& wrong) {
  const std::int64_t count = whole(wrong, "count"), of = whole(wrong, "of");
  if (count == 0) {
    return fmt::format("no single element of {} is beyond its bound; together they are off", of);
  }
  if (count == of) {
    return of == 1 ? "the only element is wrong" : fmt::format("all {} elements are wrong", of);
  }
  std::string text = fmt::format("{} of {} wrong", count, core::counted(static_cast<double>(of), "element"));
  const json &matrices = wrong.at("matrices"), &rows = wrong.at("rows"), &columns = wrong.at("columns");
  const bool batched = whole(matrices, "of") > 1;
  const bool filled = count == whole(matrices, "touched") * whole(rows, "touched") * whole(columns, "touched");
  const bool has_rows = is_telling(rows, count, filled), has_columns = is_telling(columns, count, filled);
  std::vector<std::string> places;
  if (const auto tiles = wrong.find("tiles"); tiles != wrong.end() && has_rows == has_columns) {
    const std::int64_t touched = whole(*tiles, "touched"), size = whole(*tiles, "size");
    places.push_back(fmt::format("{} of {} tiles of {}x{}{} at {}", touched, whole(*tiles, "of"), size, size,
                                 touched == 1 ? "," : ", the first", place_of(*tiles, batched)));
    return text + ": " + places.front();
  }
  if (has_rows) {
    places.push_back(lines_text(rows, "row", "rows"));
  }
  if (has_columns) {
    places.push_back(lines_text(columns, "column", "columns"));
  }
  if (batched && is_telling(matrices, count, filled)) {
    places.push_back(lines_text(matrices, "batch", "batches"));
  }
  if (places.empty()) {
    return text + (is_partial(rows) || is_partial(columns) ? ", scattered" : ", in all rows and columns");
  }
  return fmt::format("{}{}{}", text,
                     !filled              ? ", all in "
                     : places.size() == 1 ? ": all of "
                                          : ": ",
                     fmt::join(places, ", "));
}

}  // namespace numcheck::report::views
