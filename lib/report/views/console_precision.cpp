// The console's table of precision classes that requests really got.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/counted.hpp"
#include "core/strings.hpp"
#include "report/override_sentences.hpp"
#include "report/views/console.hpp"
#include "report/views/text_table.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

bool same_request(const json& one, const json& other) {
  return std::ranges::all_of(std::initializer_list<const char*>{"op", "mode", "request", "backend", "layout"},
                             [&](const char* key) { return one.at(key) == other.at(key); });
}

/// Several classes for one request, or a class that differs from the expected one.
bool is_news(const json& row) {
  return row.at("border") != "none" || row.at("class") != row.at("expected");
}

std::string request_text(const json& row) {
  std::string text = row.at("mode").get<std::string>();
  for (const auto& [name, value] : row.at("request").items()) {
    text += fmt::format(" {}={}", name == "NVIDIA_TF32_OVERRIDE" ? "override" : name, value.get<std::string>());
  }
  return text;
}

/// "A B^T"; empty for ops without such operands.
std::string layout_text(const json& layout) {
  if (!layout.contains("trans_a") || !layout.contains("trans_b")) {
    return "";
  }
  return fmt::format("A{} B{}", layout.at("trans_a").get<bool>() ? "^T" : "",
                     layout.at("trans_b").get<bool>() ? "^T" : "");
}

/// The parameters alone: neither inputs nor algorithms change the class, and the environment has its column.
std::string shape_text(const std::string& id) {
  const std::vector<std::string> parts = core::split(id, '/');
  return parts.size() > 1 ? parts[1] : id;
}

/// Notes are too long for a column: the table has their numbers.
class Footnotes {
 public:
  /// " (1)"; empty for an empty note.
  std::string mark(const std::string& note) {
    if (note.empty()) {
      return "";
    }
    auto found = std::ranges::find(notes_, note);
    if (found == notes_.end()) {
      found = notes_.insert(found, note);
    }
    return fmt::format(" ({})", found - notes_.begin() + 1);
  }

  [[nodiscard]] std::string lines() const {
    std::string text;
    for (std::size_t i = 0; i < notes_.size(); ++i) {
      text += fmt::format("  ({}) {}\n", i + 1, notes_[i]);
    }
    return text;
  }

 private:
  std::vector<std::string> notes_;
};

/// The classes of one request and layout, or of several that have the same classes in the same places.
struct Block {
  std::string request, product;
  std::vector<json> rows;
};

bool same_classes(const Block& one, const Block& other) {
  return std::ranges::equal(one.rows, other.rows, [](const json& a, const json& b) {
    return std::ranges::all_of(
        std::initializer_list<const char*>{"op", "backend", "expected", "class", "note", "where", "also"},
        [&](const char* key) { return a.at(key) == b.at(key); });
  });
}

/// `row` gets the cases of `other`, and its smallest case if that is smaller.
void add_cases(json& row, const json& other) {
  row["cases"] = row.at("cases").get<std::size_t>() + other.at("cases").get<std::size_t>();
  if (other.at("smallest_size") < row.at("smallest_size")) {
    for (const char* key : {"smallest", "smallest_id", "smallest_size"}) {
      row[key] = other.at(key);
    }
  }
}

/// Joins the blocks that differ only in `text`.
void join(std::vector<Block>& blocks, std::string Block::* text, std::string Block::* other,
          std::string_view separator) {
  std::vector<Block> joined;
  for (Block& block : blocks) {
    const auto same = std::ranges::find_if(
        joined, [&](const Block& known) { return known.*other == block.*other && same_classes(known, block); });
    if (same == joined.end()) {
      joined.push_back(std::move(block));
      continue;
    }
    ((*same).*text).append(separator).append(block.*text);
    for (std::size_t i = 0; i < block.rows.size(); ++i) {
      add_cases(same->rows[i], block.rows[i]);
    }
  }
  blocks = std::move(joined);
}

std::vector<Block> blocks_of(const std::vector<const json*>& rows) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || !same_request(*rows[i - 1], *rows[i])) {
      blocks.push_back({request_text(*rows[i]), layout_text(rows[i]->at("layout")), {}});
    }
    blocks.back().rows.push_back(*rows[i]);
  }
  join(blocks, &Block::product, &Block::request, ", ");
  join(blocks, &Block::request, &Block::product, " ");
  return blocks;
}

std::vector<Cell> cells(const Block& block, std::size_t index, Footnotes& notes) {
  const json& row = block.rows[index];
  const auto once = [index](std::string text) { return Cell{index == 0 ? std::move(text) : std::string()}; };
  const bool surprising = row.at("class") != row.at("expected");
  const bool ambiguous = !row.at("also").empty();
  return {once(row.at("op").get<std::string>()),
          once(block.request),
          once(row.at("backend").get<std::string>()),
          once(block.product),
          once(class_label(row.at("expected").get<std::string>())),
          {class_label(row.at("class").get<std::string>()) + notes.mark(row.at("note").get<std::string>()),
           surprising ? Colour::yellow : Colour::none},
          {row.at("where").get<std::string>() +
           notes.mark(ambiguous ? "other conditions fit these shapes as well, see \"also\" in report.json" : "")},
          {std::to_string(row.at("cases").get<std::size_t>())},
          {shape_text(row.at("smallest_id").get<std::string>())}};
}

}  // namespace

std::string render_precision(const json& report, const ConsoleOptions& options) {
  if (!report.contains("precision_map")) {
    return "";
  }
  constexpr std::size_t kRowsShown = 24;
  const json& all = report.at("precision_map");
  std::vector<const json*> shown;
  for (const json& row : all) {
    if (options.verbosity > 0 || is_news(row)) {
      shown.push_back(&row);
    }
  }
  if (shown.empty()) {
    return "";
  }
  std::vector<std::vector<Cell>> rows;
  Footnotes notes;
  std::size_t hidden = 0;
  for (const Block& block : blocks_of(shown)) {
    const bool fits = options.verbosity > 0 || rows.size() + block.rows.size() <= kRowsShown;
    hidden += fits ? 0 : block.rows.size();
    for (std::size_t i = 0; fits && i < block.rows.size(); ++i) {
      rows.push_back(cells(block, i, notes));
    }
  }
  std::string text = paint("precision map", Colour::bold, options.colour) + "\n";
  text += render_table({{"op"},
                        {"request"},
                        {"backend"},
                        {"product"},
                        {"expected"},
                        {"class"},
                        {"where"},
                        {"cases", true},
                        {"smallest", false, true}},
                       rows, options.width, options.colour);
  text += notes.lines();
  if (hidden > 0) {
    text += fmt::format("({}: use -v or see report.json)\n", core::counted(static_cast<double>(hidden), "more row"));
  }
  return text;
}

}  // namespace numcheck::report::views
