#include "report/views/html_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"

namespace numcheck::report::views {

using nlohmann::json;

std::string html_text(std::string_view text) {
  std::string result;
  for (const char c : core::printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string script_json(const json& value) {
  std::string result;
  for (const char c : value.dump(-1, ' ', true, json::error_handler_t::replace)) {
    result += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : c == '&' ? "\\u0026" : std::string(1, c);
  }
  return result;
}

std::string text_at(const json& object, const char* member) {
  const auto found = object.is_object() ? object.find(member) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const json& part_at(const json& object, const char* member) {
  static const json empty = json::object();
  const auto found = object.is_object() ? object.find(member) : object.end();
  return found != object.end() && found->is_structured() ? *found : empty;
}

std::string pill(std::string_view status) {
  const std::string name = html_text(status);
  return fmt::format("<span class=\"pill s-{0}\">{0}</span>", name);
}

std::string heading(std::string_view id, std::string_view title) {
  return fmt::format("<h2 id=\"{}\">{}</h2>\n", id, title);
}

std::string html_table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows) {
  const auto is_number = [&](std::size_t column) { return head[column].starts_with('>'); };
  std::string text = "<div class=\"wide\"><table><thead><tr>";
  for (std::size_t c = 0; c < head.size(); ++c) {
    text += is_number(c) ? fmt::format("<th class=\"n\">{}</th>", head[c].substr(1)) : "<th>" + head[c] + "</th>";
  }
  text += "</tr></thead><tbody>\n";
  for (const std::vector<std::string>& row : rows) {
    text += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += (is_number(c) ? "<td class=\"n\">" : "<td>") + row[c] + "</td>";
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string seconds_text(double seconds) {
  constexpr double kMilli = 1e-3, kMicro = 1e-6;
  return seconds >= 1        ? fmt::format("{:.1f} s", seconds)
         : seconds >= kMilli ? fmt::format("{:.1f} ms", seconds / kMilli)
                             : fmt::format("{:.1f} µs", seconds / kMicro);
}

std::string cases_text(std::size_t count) {
  return fmt::format("{} case{}", count, count == 1 ? "" : "s");
}

}  // namespace numcheck::report::views
