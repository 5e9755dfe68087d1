#include "verdict/doubt.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tolerance/gate_table.hpp"

namespace numcheck::verdict {
namespace {

constexpr double kMinJudged = 0.99;
/// Relative L2 error of an output that is mostly lost: of zeros it is 1. A larger one is that of a few elements whose terms cancel, or
/// of which nothing is known, and says nothing of the others.
constexpr double kLost = 0.5, kMostLost = 1.5;

/// Whether it was told from the reference by its numbers. NaN and infinities are told from any number.
bool tells(const tolerance::Fake& fake) {
  return fake.outcome == tolerance::Fake::Outcome::rejected && fake.name != "nan" && fake.name != "infinity";
}

/// Not by bits; and what follows from draws of the device, which gates of its own judge, is not faked by zeros.
bool judged_by_bounds(const OutputResult& output) {
  const auto has = [](const auto& list, std::string_view name, auto member) {
    return std::ranges::find(list, name, member) != list.end();
  };
  return has(output.certificate.fakes, "zeros", &tolerance::Fake::name) &&
         has(output.criteria, tolerance::gate_name(tolerance::Gate::bound), &tolerance::Criterion::name);
}

const tolerance::Fake* enlarged(const OutputResult& output) {
  const auto found = std::ranges::find(output.certificate.fakes, "enlarged", &tolerance::Fake::name);
  return found == output.certificate.fakes.end() ? nullptr : &*found;
}

/// Why elements were not judged: "3: the bound of their error is unknown", or of the only one "the bound of its error is unknown".
std::string reasons_of(const metric::Statistics& s) {
  const bool single = s.elements == 1;
  const std::string_view their = single ? "its" : "their", depend = single ? "it depends" : "they depend";
  std::vector<std::string> reasons;
  for (const auto& [elements, why] :
       {std::pair(s.unknown, fmt::format("the bound of {} error is unknown", their)),
        std::pair(s.undetermined,
                  fmt::format("numbers as large as any of the output are within the bound of {} error", their)),
        std::pair(s.order_dependent, fmt::format("{} on the order of the partial sums", depend))}) {
    if (elements != 0) {
      reasons.push_back(single ? why : fmt::format("{}: {}", elements, why));
    }
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

bool proves_something(const OutputResult& output) {
  return std::ranges::any_of(output.certificate.fakes, [](const tolerance::Fake& fake) {
    return fake.name == "zeros" && fake.outcome == tolerance::Fake::Outcome::rejected;
  });
}

const OutputResult& main_output_of(const RunResult& result, const std::vector<op::Port>& ports) {
  const auto first = std::ranges::find(result.outputs, std::string(), &OutputResult::pass);
  const bool has_own = std::ranges::any_of(
      ports, [&](const op::Port& port) { return port.role == op::Role::input && port.of == first->port; });
  if (!has_own) {
    return *first;
  }
  const auto proof = std::ranges::find_if(result.outputs, proves_something);
  const auto filled =
      std::ranges::find_if(result.outputs, [](const OutputResult& output) { return output.statistics.elements != 0; });
  return proof != result.outputs.end() ? *proof : filled != result.outputs.end() ? *filled : *first;
}

std::string doubt_about(const OutputResult& output, bool is_main, const plan::ToleranceSpec& wanted) {
  const metric::Statistics& s = output.statistics;
  if (wanted.min_judged == 0.0) {
    return {};  // the plan knows that there is nothing to judge
  }
  if (is_main && s.elements == 0) {
    return output.port + ": there are no elements, so passing proves nothing";
  }
  if (is_main && 2 * s.finite < s.elements - s.outside) {
    return fmt::format("{}: only {} of {} elements are finite, so passing proves little", output.port, s.finite,
                       s.elements - s.outside);
  }
  if (is_main && s.elements == 1 && s.zeros_got == 1 && s.exact_mismatch == 0) {
    return output.port + ": the only output is zero, so passing proves little";
  }
  if (is_main && s.elements == 1 && s.finite == 1 && !output.certificate.fakes.empty() &&
      std::ranges::none_of(output.certificate.fakes, tells)) {
    return output.port + ": no other number could be told from this single one, so passing proves nothing";
  }
  if (is_main && s.elements > 1 && s.arithmetic.rel_l2 >= kLost && s.arithmetic.rel_l2 <= kMostLost &&
      judged_by_bounds(output)) {
    return fmt::format(
        "{}: a relative L2 error of {:.3g} is within the bounds, so the output holds little of the result", output.port,
        s.arithmetic.rel_l2);
  }
  const double least = wanted.min_judged.value_or(kMinJudged);
  if (s.judged() >= least) {
    return {};
  }
  return s.elements == 1 ? fmt::format("{}, a single number, cannot be judged: {}", output.port, reasons_of(s))
                         : fmt::format("{}: only {:.4g} % of the elements are judged, less than {:g} % ({})",
                                       output.port, 100 * s.judged(), 100 * least, reasons_of(s));
}

std::string doubt_about_fakes(std::span<const OutputResult> outputs) {
  bool any = false;
  for (const OutputResult& output : outputs) {
    if (std::ranges::any_of(output.certificate.fakes, tells)) {
      return "";
    }
    any = any || !output.certificate.fakes.empty();
  }
  return any ? "no fake result could be told from the reference, so passing proves little" : "";
}

std::string doubt_about_groups(std::span<const OutputResult> outputs) {
  std::uint64_t most = 0;
  for (const OutputResult& output : outputs) {
    most = std::max(most, output.statistics.elements);
  }
  for (const OutputResult& output : outputs) {
    const tolerance::Fake* fake = enlarged(output);
    if (fake != nullptr && fake->within_error && 2 * output.statistics.elements >= most) {
      return fmt::format("{}: {}, so passing proves little", output.port, fake->detail);
    }
  }
  return {};
}

std::string doubt_about_size(std::span<const OutputResult> outputs, const OutputResult& main) {
  const tolerance::Fake* fake = enlarged(main);
  if (fake == nullptr || !fake->within_error) {
    return {};
  }
  const bool another_tells = std::ranges::any_of(outputs, [&main](const OutputResult& output) {
    const tolerance::Fake* own = enlarged(output);
    return own != nullptr && tells(*own) && 2 * output.statistics.elements >= main.statistics.elements;
  });
  return another_tells ? std::string() : fmt::format("{}: {}, so passing proves little", main.port, fake->detail);
}

std::string doubt_about_class(const RunResult& run) {
  const bool is_asked = run.expected_class != model::PrecisionClass::native;
  if (!is_asked || run.run.observed != model::PrecisionClass::unknown) {
    return {};
  }
  return run.expected_class == model::PrecisionClass::fp8_promoted
             ? "a probe product fits neither promoted nor fast accumulation of FP8 products, so which ran is not known"
             : "no rounding of the operands explains single products, so which precision ran is not known";
}

}  // namespace numcheck::verdict
