#include "diagnosis_html.hpp"

#include <optional>

#include <fmt/format.h>

#include "diagnose/explanation.hpp"
#include "report/views/diagnosis_page.hpp"

namespace numcheck::app {
namespace {

using report::views::DiagnosisPage;

std::optional<verdict::OutputPicture> picture_of(const verdict::RunResult& run, const std::string& port) {
  const verdict::OutputResult* const output = diagnose::output_named(run, port);
  return output == nullptr ? std::nullopt : output->picture;
}

op::Port port_of(const plan::Case& c, const std::string& port) {
  return op::port_named(c.op->ports(c.params, *c.mode), port);
}

}  // namespace

std::string diagnosis_html(const diagnose::Subject& subject, const diagnose::Diagnosis& diagnosis,
                           const Surroundings& around) {
  DiagnosisPage page{.title = subject.c.id, .text = diagnosis_text(subject, diagnosis, around, true, false)};
  const std::string& port = diagnosis.port;
  if (const auto before = port.empty() ? std::nullopt : picture_of(diagnosis.declared, port)) {
    page.maps.push_back({fmt::format("{} as declared", port), *before, port_of(subject.c, port)});
  }
  if (!diagnosis.passing.empty() && diagnosis.passing.front().applied != nullptr) {
    const diagnose::Explanation& best = diagnosis.passing.front();
    const diagnose::Applied& applied = *best.applied;
    const double flops = diagnose::Effort().declared_flops;
    const verdict::RunResult run = diagnose::judge(applied.subject, applied.trial, flops, diagnose::Depth::pictures);
    if (const auto after = picture_of(run, port)) {
      page.maps.push_back({fmt::format("{}, if {}", port, best.cause), *after, port_of(applied.trial.c, port)});
    }
  }
  return report::views::render_diagnosis(page);
}

}  // namespace numcheck::app
