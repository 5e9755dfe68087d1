// What did not simply pass: causes that several cases share, then each case with its gates, pictures and reproducer.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"
#include "report/views/html_map.hpp"
#include "report/views/html_sections.hpp"
#include "report/views/html_text.hpp"
#include "report/views/judged.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// A page must open in a browser at once: beyond these, cases have only their row.
constexpr std::size_t kMaxPictures = std::size_t{2} << 20;  ///< bytes
constexpr std::size_t kMaxDetails = 400;                    ///< cases

std::string number_at(const json& object, const char* member, std::string_view format) {
  const auto found = object.find(member);
  return found == object.end() ? "" : html_text(short_number(*found, format));
}

/// "1.9 > 1", of every gate that fails; of brief reports the tightest.
std::string gates_text(const json& output) {
  std::vector<std::string> gates;
  for (const json& criterion : part_at(output, "criteria")) {
    const bool ok = criterion.value("ok", ratio_of_criterion(criterion) <= 1);
    if (!ok) {
      gates.push_back(fmt::format("{} {} &gt; {}", html_text(text_at(criterion, "name")),
                                  number_at(criterion, "measured", ".4g"), number_at(criterion, "limit", ".4g")));
    }
  }
  return fmt::format("{}", fmt::join(gates, ", "));
}

std::string metrics_text(const json& output) {
  const json& metrics = part_at(output, "metrics");
  std::vector<std::string> parts;
  const auto add = [&](const char* member, std::string_view format, const char* words) {
    if (const std::string value = number_at(metrics, member, format); !value.empty()) {
      parts.push_back(fmt::format(fmt::runtime(words), value));
    }
  };
  add("rel_l2", ".2e", "relative L2 {}");
  add("effective_bits", ".1f", "{} effective bits");
  add("max_ulp", ".4g", "at most {} ULP");
  add("max_over_bound", ".3g", "at most {} of the bound");
  for (const auto& [member, words] :
       {std::pair("nonfinite_mismatch", "NaN or infinity wrong in {}"), std::pair("poison", "not written: {}")}) {
    const std::string count = number_at(metrics, member, "");
    if (!count.empty() && count != "0") {
      parts.push_back(fmt::format(fmt::runtime(words), count) + " of " + number_at(metrics, "elements", ""));
    }
  }
  if (const std::string judged = judged_text(metrics); !judged.empty()) {
    parts.push_back(judged);
  }
  return fmt::format("{}", fmt::join(parts, " · "));
}

std::string findings_text(const json& output) {
  std::string text;
  for (const json& finding : part_at(output, "findings")) {
    const std::string cause = text_at(finding, "cause"), words = text_at(finding, "text");
    if (!cause.empty()) {
      const bool repeats = words.starts_with(cause);
      text += fmt::format("<p><b>{}</b>{}</p>\n", html_text(cause),
                          html_text(repeats         ? words.substr(cause.size())
                                    : words.empty() ? ""
                                                    : ": " + words));
    } else if (!words.empty()) {
      text += fmt::format("<p class=\"facts\">{}: {}</p>\n", html_text(text_at(finding, "name")), html_text(words));
    }
  }
  return text;
}

std::string worst_text(const json& output) {
  const json& worst = part_at(output, "worst");
  if (!worst.is_array() || worst.empty()) {
    return "";
  }
  const json& first = worst.front();
  std::vector<std::string> index;
  for (const json& part : part_at(first, "index")) {
    index.push_back(part.dump());
  }
  return fmt::format("<p class=\"facts\">worst at [{}]: got {} ({}), expected {}, {} ULP</p>\n",
                     html_text(fmt::format("{}", fmt::join(index, ", "))), number_at(first, "got", ".9g"),
                     html_text(text_at(first, "got_bits")), number_at(first, "expected", ".9g"),
                     number_at(first, "ulps", ".4g"));
}

/// An output that fails or warns; `pictures` counts the bytes that may still be spent.
std::string output_block(const std::string& port, const json& output, std::size_t& pictures) {
  const std::string gates = gates_text(output);
  const bool has_map = !part_at(output, "error_map").empty();
  if (gates.empty() && !has_map) {
    return "";
  }
  std::string text =
      fmt::format("<p class=\"small\"><b>{}</b> {}</p>\n", html_text(port), gates) + findings_text(output);
  if (pictures > 0) {
    const std::string maps = map_pictures(output);
    const std::string drawn =
        (maps.empty() ? "" : "<div class=\"pictures\">\n" + maps + "</div>\n") + window_table(output);
    pictures -= std::min(pictures, drawn.size());
    text += drawn;
  } else if (has_map) {
    text += "<p class=\"facts\">The report has a map of this output; this page has no room for more pictures.</p>\n";
  }
  return text + fmt::format("<p class=\"facts\">{}</p>\n", metrics_text(output)) + worst_text(output);
}

/// The first run that ended as the case did, in full, and the number of others: a failed one of known failures, and of cases that
/// did not end by themselves.
std::string runs_block(const json& record, std::size_t& pictures) {
  const json& runs = part_at(record, "runs");
  const auto status_of = [](const json& run) { return text_at(run, "status"); };
  const std::string status = text_at(record, "status");
  const std::string ended = std::ranges::find(runs, status, status_of) != runs.end() ? status : "fail";
  const auto is_alike = [&](const json& run) { return status_of(run) == ended; };
  const auto first = std::ranges::find_if(runs, is_alike);
  if (first == runs.end()) {
    return "";
  }
  std::string text;
  if (const std::string label = text_at(*first, "implementation"); !label.empty()) {
    text += "<p class=\"facts\">" + html_text(label);
    if (runs.size() > 1) {
      text += fmt::format(" ({} of {} algorithms)", std::ranges::count_if(runs, is_alike), runs.size());
    }
    text += "</p>\n";
  }
  for (const auto& [port, output] : part_at(*first, "outputs").items()) {
    text += output_block(port, output, pictures);
  }
  if (const std::string guards = text_at(part_at(*first, "guards"), "detail"); !guards.empty()) {
    text += "<p>guards: " + html_text(guards) + "</p>\n";
  }
  return text;
}

std::string case_block(const HtmlSource& source, std::size_t i, std::size_t& pictures) {
  const CaseFacts& facts = source.facts[i];
  std::string text = fmt::format(
      "<article class=\"case k-{0}\" id=\"{1}\"><div class=\"title\">{2}<span class=\"id\">{3}</span>"
      "<span class=\"hash id\">#{4}</span></div>\n",
      html_text(facts.status), case_anchor(source.digests[i]), pill(facts.status), html_text(facts.id),
      html_text(source.digests[i]));
  if (!facts.reason.empty()) {
    text += "<p class=\"why\">" + html_text(facts.reason) + "</p>\n";
  }
  text += runs_block(source.cases[i], pictures);
  if (!facts.reproduce.empty()) {
    text += "<pre>" + html_text(facts.reproduce) + "</pre>\n";
  }
  return text + "</article>\n";
}

std::string causes_block(const json& report) {
  std::vector<std::vector<std::string>> rows;
  for (const json& cause : part_at(report, "causes")) {
    std::vector<std::string> modes;
    for (const json& mode : part_at(cause, "modes")) {
      modes.push_back(html_text(mode.is_string() ? mode.get<std::string>() : ""));
    }
    rows.push_back({number_at(cause, "cases", ""), "<b>" + html_text(text_at(cause, "cause")) + "</b>",
                    html_text(text_at(cause, "op")), fmt::format("{}", fmt::join(modes, ", ")),
                    html_text(text_at(cause, "implementation")),
                    "<span class=\"id\">" + html_text(text_at(cause, "first_id")) + "</span>"});
  }
  return rows.empty() ? "" : html_table({">cases", "one cause", "op", "modes", "implementation", "first"}, rows);
}

}  // namespace

bool is_notable(const std::string& status) {
  return status != "pass" && status != "unsupported" && status != "skipped";
}

std::string failures_section(const HtmlSource& source) {
  std::size_t pictures = kMaxPictures, shown = 0, notable = 0;
  std::string blocks;
  bool any_picture = false;
  // Failures first, then what could not be judged, then warnings and the like.
  for (const int turn : {0, 1, 2}) {
    for (std::size_t i = 0; i < source.facts.size(); ++i) {
      const Outcome outcome = outcome_of(source.facts[i].status);
      const int own = outcome == Outcome::failed ? 0 : outcome == Outcome::broken ? 1 : 2;
      if (own != turn || !is_notable(source.facts[i].status)) {
        continue;
      }
      ++notable;
      if (shown < kMaxDetails) {
        ++shown;
        const std::size_t before = pictures;
        blocks += case_block(source, i, pictures);
        any_picture = any_picture || pictures != before;
      }
    }
  }
  if (notable == 0) {
    return "";
  }
  std::string text = heading("failures", "What did not simply pass") + causes_block(source.report);
  text += any_picture ? map_key() : "";
  text += blocks;
  if (shown < notable) {
    text += fmt::format("<p class=\"soft\">{} more are only in the table below.</p>\n", cases_text(notable - shown));
  }
  return text;
}

}  // namespace numcheck::report::views
