#include "report/views/diagnosis_page.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "html_page.inc"  // kStyle, kScript, kCharts
#include "report/picture_members.hpp"
#include "report/views/html_map.hpp"
#include "report/views/html_text.hpp"

namespace numcheck::report::views {
namespace {

/// Maps and the elements around the worst one.
std::string section_of(const DiagnosisPage::Map& map) {
  const op::Port& port = map.port;
  nlohmann::json output = picture_json(map.picture, port);
  output["shape"] =
      port.batch > 1 ? nlohmann::json{port.batch, port.rows, port.cols} : nlohmann::json{port.rows, port.cols};
  return fmt::format("<section>\n<h2>{}</h2>\n<div class=\"pictures\">\n{}</div>\n{}</section>\n", html_text(map.title),
                     map_pictures(output), window_table(output));
}

std::string lines_of(std::string_view text) {
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines += html_text(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string render_diagnosis(const DiagnosisPage& page) {
  std::string sections;
  for (const DiagnosisPage::Map& map : page.maps) {
    sections += section_of(map);
  }
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>{} – te-numcheck</title>\n<style>\n{}</style>"
      "</head>\n<body>\n<h1 class=\"id\">{}</h1>\n<main>\n<pre>{}</pre>\n{}</main>\n</body></html>\n",
      html_text(page.title), kStyle, html_text(page.title), lines_of(page.text), sections);
}

}  // namespace numcheck::report::views
