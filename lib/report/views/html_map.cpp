#include "report/views/html_map.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/views/html_shape.hpp"
#include "report/views/html_text.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

constexpr int kSide = 256;             ///< of the longer side of a map, in pixels
constexpr int kLeft = 44, kTop = 14;   ///< room for labels
constexpr std::size_t kMaxCells = 64;  ///< along a side; our own maps have up to 32

struct Map {
  std::int64_t rows = 0, cols = 0, cell_rows = 0, cell_cols = 0;
  std::vector<std::string> worst, mean;
  double mean_unit = 0;
};

std::vector<std::string> texts_at(const json& object, const char* member) {
  std::vector<std::string> texts;
  for (const json& row : part_at(object, member)) {
    texts.push_back(row.is_string() ? row.get<std::string>() : "");
  }
  return texts;
}

bool is_rectangle(const std::vector<std::string>& texts) {
  return !texts.empty() && texts.size() <= kMaxCells && !texts[0].empty() && texts[0].size() <= kMaxCells &&
         std::ranges::all_of(texts, [&](const std::string& text) { return text.size() == texts[0].size(); });
}

/// The map of an output, if it can be drawn: a report may come from anywhere.
std::optional<Map> map_of(const json& output) {
  const json& given = part_at(output, "error_map");
  const auto whole = [&given](const char* member) {
    const auto found = given.is_object() ? given.find(member) : given.end();
    return found != given.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  };
  Map map{whole("rows"), whole("cols"), whole("cell_rows"), whole("cell_cols"), {}, {}, 0};
  map.worst = texts_at(given, "worst");
  map.mean = texts_at(given, "mean");
  map.mean_unit = given.contains("mean_unit") ? number_value(given.at("mean_unit")) : 0;
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  const auto fits = [](std::int64_t extent) { return extent > 0 && extent < kMost; };
  if (!fits(map.rows) || !fits(map.cols) || !fits(map.cell_rows) || !fits(map.cell_cols) || !is_rectangle(map.worst)) {
    return std::nullopt;
  }
  if (!is_rectangle(map.mean) || map.mean.size() != map.worst.size() || map.mean[0].size() != map.worst[0].size()) {
    map.mean.clear();
  }
  return map;
}

/// Colour of a cell as CSS; empty: none. The letters are those of picture_members.hpp.
std::string worst_colour(char letter) {
  switch (letter) {
    case '#':
      return "fill:var(--doubt)";
    case '!':
      return "fill:var(--ink)";
    case '?':
      return "fill:var(--unknown);fill-opacity:.5";
    default:
      break;
  }
  if (letter >= 'a' && letter <= 'i') {
    return fmt::format("fill:var(--calm);fill-opacity:.{:02}", 6 + 5 * (letter - 'a'));
  }
  constexpr std::string_view kLast = "jlosyz";  // up to 2, 8, 64, 1024 and 65536 times the bound, and beyond
  for (std::size_t i = 0; i < kLast.size(); ++i) {
    if (letter > 'i' && letter <= kLast[i]) {
      return fmt::format("fill:var(--h{})", i + 1);
    }
  }
  return "";
}

std::string mean_colour(char letter) {
  constexpr int kSteps = 12;
  const int level = letter - 'm';
  if (letter == '?') {
    return "fill:var(--unknown);fill-opacity:.5";
  }
  if (level == 0 || level < -kSteps || level > kSteps) {
    return "";
  }
  return fmt::format("fill:var(--{});fill-opacity:{:.2f}", level > 0 ? "more" : "less",
                     std::sqrt(std::abs(level) / static_cast<double>(kSteps)));
}

/// Sizes of a drawing in pixels.
struct Frame {
  int cell_width, cell_height, width, height;

  Frame(std::size_t down, std::size_t across) {
    const int longer = static_cast<int>(std::max(down, across));
    cell_width = cell_height = std::clamp(kSide / longer, 8, 32);
    constexpr int kThin = 24;  // a vector should not be a line
    cell_height = down < 3 ? kThin : cell_height;
    cell_width = across < 3 ? kThin : cell_width;
    width = cell_width * static_cast<int>(across);
    height = cell_height * static_cast<int>(down);
  }
};

/// One path per colour, of runs of equal cells.
std::string cells_svg(const std::vector<std::string>& rows, const Frame& frame, std::string (*colour)(char)) {
  std::map<std::string, std::string> paths;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t start = 0; start < rows[row].size();) {
      const std::string style = colour(rows[row][start]);
      std::size_t end = start + 1;
      while (end < rows[row].size() && colour(rows[row][end]) == style) {
        ++end;
      }
      if (!style.empty()) {
        const std::size_t width = (end - start) * static_cast<std::size_t>(frame.cell_width);
        paths[style] += fmt::format("M{} {}h{}v{}h-{}z", start * static_cast<std::size_t>(frame.cell_width),
                                    row * static_cast<std::size_t>(frame.cell_height), width, frame.cell_height, width);
      }
      start = end;
    }
  }
  std::string text;
  for (const auto& [style, path] : paths) {
    text += fmt::format("<path style=\"{}\" d=\"{}\"/>", style, path);
  }
  return text;
}

/// Lines at every eighth of the cells, and labels at every quarter, in elements.
std::string grid_svg(const Map& map, const Frame& frame) {
  std::string path, labels;
  const auto step_of = [](std::size_t cells) { return std::max<std::size_t>(1, (cells + 7) / 8); };
  const std::size_t down = map.worst.size(), across = map.worst[0].size();
  for (std::size_t i = 0; i < across; i += step_of(across)) {
    const std::size_t x = i * static_cast<std::size_t>(frame.cell_width);
    path += i == 0 ? "" : fmt::format("M{} 0v{}", x, frame.height);
    if (i / step_of(across) % 2 == 0) {
      labels += fmt::format("<text x=\"{}\" y=\"-4\">{}</text>", x, static_cast<std::int64_t>(i) * map.cell_cols);
    }
  }
  for (std::size_t i = 0; i < down; i += step_of(down)) {
    const std::size_t y = i * static_cast<std::size_t>(frame.cell_height);
    path += i == 0 ? "" : fmt::format("M0 {}h{}", y, frame.width);
    if (i / step_of(down) % 2 == 0) {
      labels += fmt::format("<text x=\"-5\" y=\"{}\" text-anchor=\"end\">{}</text>", y + 8,
                            static_cast<std::int64_t>(i) * map.cell_rows);
    }
  }
  return fmt::format("<path class=\"grid\" d=\"{0}\"/><path class=\"grid light\" d=\"{0}\"/>{1}", path, labels);
}

/// Borders between the matrices of a batch, unless there are too many.
std::string batch_svg(const json& output, const Map& map, const Frame& frame) {
  const json& shape = part_at(output, "shape");
  if (!shape.is_array() || shape.size() != 3 || !shape[0].is_number_unsigned() || !shape[1].is_number_unsigned()) {
    return "";
  }
  const auto count = shape[0].get<std::uint64_t>();
  std::string path;
  for (std::uint64_t i = 1; i < count && count <= map.worst.size(); ++i) {
    const double row = static_cast<double>(i) * shape[1].get<double>() / static_cast<double>(map.cell_rows);
    path += fmt::format("M0 {:.1f}h{}", row * frame.cell_height, frame.width);
  }
  return path.empty() ? "" : fmt::format("<path class=\"batch\" d=\"{}\"/>", path);
}

/// One of the two maps.
struct Drawing {
  const std::vector<std::string>& rows;
  std::string (*colour)(char letter);
  std::string_view name;
  double mean_unit;  ///< 0: of the map of the largest errors
  bool diagonal;     ///< draw one
};

/// The letters are there for the page's script, which says what is under the pointer.
std::string map_svg(const json& output, const Map& map, const Drawing& drawing) {
  const Frame frame(drawing.rows.size(), drawing.rows[0].size());
  const int width = kLeft + frame.width + 12, height = kTop + frame.height + 2;
  std::string text = fmt::format(
      "<svg class=\"map\" width=\"{0}\" height=\"{1}\" viewBox=\"-{2} -{3} {0} {1}\" role=\"img\" aria-label=\"{4}\" "
      "data-extents=\"{5} {6} {7} {8}\" data-unit=\"{9}\" data-letters=\"{10}\">",
      width, height, kLeft, kTop, drawing.name, map.rows, map.cols, map.cell_rows, map.cell_cols, drawing.mean_unit,
      html_text(fmt::format("{}", fmt::join(drawing.rows, " "))));
  text += "<g shape-rendering=\"crispEdges\">" + cells_svg(drawing.rows, frame, drawing.colour) + "</g>" +
          grid_svg(map, frame) + batch_svg(output, map, frame);
  text += drawing.diagonal ? fmt::format("<path class=\"batch\" d=\"M0 0L{} {}\"/>", frame.width, frame.height) : "";
  return text + fmt::format("<rect class=\"frame\" width=\"{}\" height=\"{}\"/></svg>", frame.width, frame.height);
}

std::string swatch(std::string_view style, std::string_view label) {
  return fmt::format("<span><i style=\"{}\"></i>{}</span> ", style, label);
}

std::string worst_legend(const std::vector<std::string>& rows) {
  const auto any = [&rows](char letter) {
    return std::ranges::any_of(rows,
                               [letter](const std::string& row) { return row.find(letter) != std::string::npos; });
  };
  std::string text = swatch("background:var(--calm);opacity:.4", "within the bound");
  constexpr std::array kSteps = {"to 2×", "8×", "64×", "1000×", "65000×", "more"};
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    text += swatch(fmt::format("background:var(--h{})", i + 1), kSteps[i]);
  }
  text += any('!') ? swatch("background:var(--ink)", "not written") : "";
  text += any('#') ? swatch("background:var(--doubt)", "NaN or infinity wrong") : "";
  text += any('?') ? swatch("background:var(--unknown);opacity:.5", "not in the sample") : "";
  return "<div class=\"legend\">" + text + "</div>";
}

}  // namespace

std::string map_pictures(const json& output) {
  const std::optional<Map> map = map_of(output);
  if (!map.has_value()) {
    return "";
  }
  std::string text = fmt::format(
      "<figure><figcaption>Largest error / bound<span>{} × {} elements, {} × {} in a "
      "cell</span></figcaption>{}{}</figure>\n",
      map->rows, map->cols, map->cell_rows, map->cell_cols,
      map_svg(output, *map, {map->worst, &worst_colour, "map of the largest error over bound", 0, false}),
      worst_legend(map->worst));
  const MapShape shape = shape_of(map->worst, map->mean, map->cell_rows == map->cell_cols);
  if (!map->mean.empty()) {
    const std::string unit = html_text(short_number(number(map->mean_unit), ".2g"));
    text += fmt::format(
        "<figure><figcaption>Mean error, with its sign<span>got − expected, averaged over a cell</span></figcaption>{}"
        "<div class=\"legend\">{}{}{}</div></figure>\n",
        map_svg(output, *map,
                {map->mean, &mean_colour, "map of the mean error", map->mean_unit, shape == MapShape::mirrored}),
        swatch("background:var(--less)", "−" + unit), swatch("border:1px solid var(--line)", "0"),
        swatch("background:var(--more)", "+" + unit));
  }
  const std::string glyph = shape_glyph(shape);
  return glyph.empty() ? text : text + "<figure><figcaption>Looks like</figcaption>" + glyph + "</figure>\n";
}

std::string map_key() {
  std::string text =
      "<details open><summary>What the maps may look like, and what that may mean</summary><div class=\"keys\">\n";
  for (const MapShape shape : {MapShape::block, MapShape::rows, MapShape::mirrored, MapShape::stripes_down,
                               MapShape::woven, MapShape::noise}) {
    text += shape_glyph(shape);
  }
  return text + "</div></details>\n";
}

}  // namespace numcheck::report::views
