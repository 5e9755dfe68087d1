// The console's warnings about what proves nothing: tolerances of plans, and planted faults that change no output.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/case_facts.hpp"
#include "report/number.hpp"
#include "report/views/console.hpp"
#include "report/views/console_format.hpp"
#include "report/views/text_table.hpp"
#include "tolerance/judge.hpp"

namespace numcheck::report::views {
namespace {

using nlohmann::json;

/// Cases whose tolerance has the same fault; the worst of them is the example.
struct Absurd {
  std::size_t cases = 0;
  double extreme = 0;
  std::string id;

  /// `badness` grows with the fault.
  void add(double badness, const std::string& example) {
    if (badness > extreme || cases == 0) {
      extreme = badness;
      id = example;
    }
    ++cases;
  }
};

/// The largest of `of(tolerance)` over the outputs of a case that have one; 0 if none has.
template <class Badness>
double worst_of(const json& record, const Badness& of) {
  double worst = 0;
  for (const json& run : record.at("runs")) {
    for (const json& output : run.at("outputs")) {
      const auto found = output.find("plan_tolerance");
      if (found != output.end() && !found->is_null()) {
        worst = std::max(worst, of(*found));
      }
    }
  }
  return worst;
}

std::string line(std::string_view limit, const Absurd& absurd, const std::string& what, const ConsoleOptions& options) {
  return fmt::format("{}  the plan's {} of {} case{}: {}, as in {}\n", paint("WARN", Colour::yellow, options.colour),
                     limit, absurd.cases, absurd.cases == 1 ? "" : "s", what, absurd.id);
}

/// A limit of plans, and the member of a record that says how many error bounds it is.
struct Limit {
  std::string_view name, member;
};
constexpr std::array kLimits = {Limit{"allclose", "limit_over_bound"}, Limit{"ulp", "ulp_over_bound"},
                                Limit{"rel_l2", "rel_l2_over_bound"}};

}  // namespace

std::string render_unseen_fault(const json& report, const ConsoleOptions& options) {
  const std::string unseen = unseen_fault_text(report);
  return unseen.empty() ? "" : fmt::format("{}  {}\n", paint("WARN", Colour::yellow, options.colour), unseen);
}

std::string render_tolerances(const json& report, const ConsoleOptions& options) {
  std::array<Absurd, kLimits.size()> loose;
  Absurd tight;
  for (const json& record : report.at("cases")) {
    const double ulps_missing =
        worst_of(record, [](const json& one) { return 1 / number_value(one.at("atol_over_ulp")); });
    const std::string& id = record.at("id").get_ref<const std::string&>();
    for (std::size_t i = 0; i < kLimits.size(); ++i) {
      const double over_bound = worst_of(record, [&](const json& one) {
        const auto found = one.find(kLimits[i].member);  // older reports lack some
        return found == one.end() || found->is_null() ? 0 : number_value(*found);
      });
      if (over_bound > tolerance::kLooseLimit) {
        loose[i].add(over_bound, id);
      }
    }
    if (ulps_missing > 1 / tolerance::kFewestUlp) {
      tight.add(ulps_missing, id);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < kLimits.size(); ++i) {
    if (loose[i].cases != 0) {
      text += line(
          kLimits[i].name, loose[i],
          fmt::format("at least {:.3g} times the error bound: accepts what no correct kernel does", loose[i].extreme),
          options);
    }
  }
  if (tight.cases != 0) {
    text += line("allclose", tight,
                 fmt::format("atol is {:.3g} ulp of a typical output: correct rounding may miss it", 1 / tight.extreme),
                 options);
  }
  return text;
}

}  // namespace numcheck::report::views
