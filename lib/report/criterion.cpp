#include "report/criterion.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <nlohmann/json.hpp>

#include "report/case_facts.hpp"
#include "report/number.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using About = tolerance::Criterion::About;

constexpr std::array kAbouts = {About::errors,    About::rounding, About::pattern,
                                About::unwritten, About::conduct,  About::repetition};

About about_of(const json& criterion) {
  const auto name = criterion.find("about");
  if (name == criterion.end()) {
    return About::errors;
  }
  const auto* found = std::ranges::find(kAbouts, name->get_ref<const std::string&>(), &about_name);
  return found == kAbouts.end() ? About::errors : *found;
}

void raise(std::optional<double>& largest, double ratio) {
  largest = largest.has_value() && *largest >= ratio ? *largest : ratio;
}

}  // namespace

std::string_view about_name(About about) noexcept {
  switch (about) {
    case About::errors:
      return "errors";
    case About::rounding:
      return "rounding";
    case About::pattern:
      return "pattern";
    case About::unwritten:
      return "unwritten";
    case About::conduct:
      return "conduct";
    case About::repetition:
      return "repetition";
  }
  return "errors";
}

tolerance::Criterion criterion_of(const json& criterion) {
  const double measured = number_value(criterion.at("measured")), limit = number_value(criterion.at("limit"));
  return {.name = criterion.at("name").get<std::string>(),
          .measured = measured,
          .limit = limit,
          .ok = criterion.value("ok", measured <= limit),
          .source = criterion.value("source", std::string()),
          .about = about_of(criterion)};
}

Margins margins_of(const json& record) {
  Margins margins;
  for (const json& run : record.at("runs")) {
    for (const json& output : run.at("outputs")) {
      for (const json& criterion : output.at("criteria")) {
        const double ratio = ratio_of_criterion(criterion);
        const bool holds = ratio <= 1;
        const bool rounding = about_of(criterion) == About::rounding;
        if (rounding) {
          raise(margins.rounding, ratio);
        }
        if (!rounding || !holds) {
          raise(margins.arithmetic, ratio);
        }
        if (std::isinf(ratio) && margins.without_ratio.empty()) {
          margins.without_ratio = criterion.at("name").get_ref<const std::string&>();
        }
      }
    }
  }
  return margins;
}

}  // namespace numcheck::report
