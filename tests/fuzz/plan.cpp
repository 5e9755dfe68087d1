// A plan from outside: parsed, decoded and expanded.
#include "plan/plan.hpp"

#include "plan/diagnostic.hpp"
#include "text.hpp"
#include "vocabulary.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace numcheck;
  plan::Limits limits;
  limits.max_cases = 500;
  limits.sandbox = true;  // with a folder that does not exist, so that "extends" finds nothing
  try {
    const plan::Plan plan =
        plan::parse_plan(fuzz::text(data, size), "/nonexistent/plan.json", fuzz::vocabulary(), limits);
    for (const plan::Diagnostic& warning : plan.warnings) {
      (void)plan::render(warning);
    }
  } catch (const plan::PlanError& error) {
    for (const plan::Diagnostic& diagnostic : error.diagnostics()) {
      (void)plan::render(diagnostic);
    }
  }
  return 0;
}
