#include "diagnosis_text.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "plan/case.hpp"
#include "report/views/text_table.hpp"
#include "report/views/wrong_sentence.hpp"
#include "report/wrong_member.hpp"
#include "verdict/evaluate.hpp"

namespace numcheck::app {
namespace {

using diagnose::Diagnosis;
using diagnose::Explanation;
using report::views::Colour;
using report::views::paint;

constexpr std::size_t kLabel = 10;  // columns of a label
constexpr std::size_t kWidth = 110;

/// A label, then the text in lines of its own width.
std::string paragraph(std::string_view label, std::string_view text, bool colour) {
  std::string lines = paint(fmt::format("{:<{}}", label, kLabel), Colour::bold, colour);
  std::size_t column = kLabel;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (column > kLabel && column + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(kLabel, ' ');
      column = kLabel;
    }
    lines += column > kLabel ? " " : "";
    lines += word;
    column += word.size() + 1;
    begin = end + 1;
  }
  return lines + "\n";
}

const verdict::OutputResult& explained_output(const Diagnosis& diagnosis) {
  return *std::ranges::find(diagnosis.declared.outputs, diagnosis.port, &verdict::OutputResult::port);
}

std::string failure_text(const verdict::OutputResult& output) {
  const auto failing =
      std::ranges::find_if(output.criteria, [](const tolerance::Criterion& criterion) { return !criterion.ok; });
  std::string text = failing == output.criteria.end()
                         ? std::string()
                         : fmt::format(": {} {:.4g} > {:.4g}", failing->name, failing->measured, failing->limit);
  if (output.wrong.has_value() && output.wrong->count > 0) {
    text += "; " + report::views::wrong_sentence(report::wrong_json(*output.wrong));
  }
  return text + fmt::format("; relative L2 {:.3g}", output.statistics.arithmetic.rel_l2);
}

std::string percent(double share) {
  return share > 0.99 && share < 1 ? fmt::format("{:.4f} %", std::min(share, 0.999999) * 100)
                                   : fmt::format("{:.3g} %", std::max(share, 0.0) * 100);
}

/// Of 16- and 8-bit outputs the bits say more than the error, most of which their own rounding leaves.
std::string evidence_text(const Diagnosis& diagnosis, const Explanation& best, const verdict::OutputResult& output) {
  if (best.is_finding) {
    return fmt::format("it explains {} of what differs", percent(best.share));
  }
  if (best.is_consistent_only) {
    return "it allows for errors of this size, but predicts none of them in particular: others may have left them as "
           "well";
  }
  const std::string_view gates = best.all_gates ? "every gate passes then; " : "";
  if (diagnosis.is_drawn && best.all_gates && best.equal_bits == 0) {  // nobody predicts what is drawn
    return "every gate passes then";
  }
  if (best.replay.has_value()) {
    return fmt::format("{}{} ({} of {} as declared)", gates, diagnose::evidence_of(*best.replay), diagnosis.equal_bits,
                       diagnosis.of);
  }
  const bool has_only_bits = best.share <= 0 && best.of > 0 && best.equal_bits == best.of;  // drawn, or no numbers
  if (output.statistics.flip_rate.has_value() || has_only_bits) {
    return fmt::format(
        "{}{} of {} elements are, bit for bit, the nearest numbers to what it predicts "
        "({} as declared)",
        gates, best.equal_bits, best.of, diagnosis.equal_bits);
  }
  if (best.all_gates && best.share <= 0) {  // NaN and infinities have no error
    return "every gate passes then";
  }
  return fmt::format("{}it explains {} of the squared error", gates, percent(best.share));
}

std::string names_of(std::span<const Explanation> explanations) {
  std::string text;
  for (const Explanation& one : explanations) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", core::printable(one.name));
  }
  return text;
}

std::string untried_text(const Diagnosis& diagnosis) {
  const std::vector<std::string>& untried = diagnosis.untried;
  constexpr std::size_t kMost = 4;
  if (untried.empty()) {
    return "";
  }
  const std::span<const std::string> some = std::span(untried).first(std::min(kMost, untried.size()));
  return fmt::format("; not tried, because there was no time (--effort thorough): {}{}", fmt::join(some, ", "),
                     untried.size() > kMost ? fmt::format(" and {} more", untried.size() - kMost) : "");
}

/// The closest of those that do not explain it, one of each family, if they explain something.
std::string excluded_text(const Diagnosis& diagnosis, bool verbose) {
  const std::span<const Explanation> excluded = diagnosis.excluded;
  const std::uint64_t pairs = diagnosis.pairs_tried;
  const std::size_t most = verbose ? excluded.size() : 3;
  const double something = verbose ? -std::numeric_limits<double>::infinity() : 0.01;
  std::vector<std::string> families;
  std::string text;
  for (const Explanation& one : excluded) {
    const bool is_new = verbose || std::ranges::find(families, one.family) == families.end();
    if (families.size() < most && real_share(diagnosis, one) > something && is_new) {
      families.push_back(one.family);
      text += fmt::format("{}{} (explains {}, {})", text.empty() ? "" : "; ", core::printable(one.name),
                          percent(one.share), core::printable(one.failing));
    }
  }
  return text +
         fmt::format("{}{} that were tried{}", text.empty() ? "any of the " : "; nor any other of the ",
                     excluded.size(), pairs == 0 ? "" : fmt::format(", nor {} pairs of them", pairs)) +
         (diagnosis.pairs_left ? "; there was no time for more pairs (--effort thorough)" : "") +
         untried_text(diagnosis);
}

/// Of what explains most of the error, but not all. What is near 0 throughout explains half of any error as large as the output.
std::string closest_text(const Diagnosis& diagnosis) {
  constexpr double kMost = 0.5;
  if (diagnosis.excluded.empty() || real_share(diagnosis, diagnosis.excluded.front()) < kMost) {
    return "none of what was tried explains it";
  }
  const Explanation& closest = diagnosis.excluded.front();
  const double real = real_share(diagnosis, closest);
  const std::string beyond =
      real < closest.share ? fmt::format(", {} of what zeros would leave", percent(real)) : std::string();
  return fmt::format("not proven; closest: {} (that explains {} of the squared error{}, but {})",
                     core::printable(closest.cause), percent(closest.share), beyond, core::printable(closest.failing));
}

/// Which comparison of two right results is justified, and what others make of this one.
std::string tolerance_text(const Diagnosis& diagnosis, const verdict::OutputResult& output) {
  const auto facts = diagnosis.elements.find(output.port);
  if (facts == diagnosis.elements.end() || !facts->second.tolerance.has_value() || output.statistics.elements == 0) {
    return "";
  }
  const metric::PairTolerance& tolerance = *facts->second.tolerance;
  const auto share = [&](const metric::Opinion& opinion) {
    return percent(static_cast<double>(opinion.mismatches) / static_cast<double>(output.statistics.elements));
  };
  return fmt::format(
      "two right results for {} can differ by as much as rtol={:.2g}, atol={:.2g} allow; against the exact result, "
      "numpy.testing.assert_allclose with its defaults calls {} of these elements wrong, torch.testing.assert_close {}",
      output.port, tolerance.rtol, tolerance.atol, share(output.statistics.numpy_allclose),
      share(output.statistics.torch_allclose));
}

std::string outputs_text(const Diagnosis& diagnosis) {
  std::string text;
  for (const verdict::OutputResult& output : diagnosis.declared.outputs) {
    text += fmt::format("{}{} is correct: every gate passes, relative L2 {:.3g}", text.empty() ? "" : "; ", output.port,
                        output.statistics.arithmetic.rel_l2);
  }
  return text;
}

}  // namespace

std::string apart_text(const std::vector<diagnose::Apart>& all, bool colour) {
  std::string text;
  for (const diagnose::Apart& one : all) {
    text += paragraph("apart",
                      fmt::format("{}: {} of {} elements differ, by at most {:.3g}; relative L2 {:.3g}", one.port,
                                  one.different, one.elements, one.largest, one.rel_l2),
                      colour);
  }
  return text;
}

std::string inputs_apart_text(const std::vector<diagnose::Apart>& all, bool colour) {
  std::string text;
  for (const diagnose::Apart& one : all) {
    text +=
        paragraph("inputs",
                  fmt::format("{} of {} elements of {} differ, by at most {:.3g} (relative L2 {:.3g}): the two were "
                              "computed from different inputs",
                              one.different, one.elements, one.port, one.largest, one.rel_l2),
                  colour);
  }
  return text;
}

std::string diagnosis_text(const diagnose::Subject& subject, const Diagnosis& diagnosis, const Surroundings& around,
                           bool verbose, bool colour) {
  plan::Case c = subject.c;
  c.inputs.ports.clear();
  plan::identify(c);
  std::string text = core::printable(c.id) + "\n";
  text += around.notice.empty() ? "\n" : fmt::format("*** {} ***\n\n", around.notice);
  if (diagnosis.kind == Diagnosis::Kind::correct) {
    text += paragraph("verdict", outputs_text(diagnosis), colour);
    if (!diagnosis.declared.failing.empty()) {
      text += paragraph("but", core::printable(diagnosis.declared.failing), colour);
    }
    if (!diagnosis.remedy.empty()) {
      text += paragraph("remedy", diagnosis.remedy, colour);
    }
    for (const verdict::OutputResult& output : diagnosis.declared.outputs) {
      if (const std::string tolerance = tolerance_text(diagnosis, output); !tolerance.empty()) {
        text += paragraph("tolerance", tolerance, colour);
      }
    }
  } else if (diagnosis.kind == Diagnosis::Kind::undecided) {
    text +=
        paragraph("verdict", "undecided: no gate fails, but " + core::printable(diagnosis.declared.failing), colour);
  } else if (diagnosis.kind == Diagnosis::Kind::misbehaved) {
    text += paragraph("verdict", outputs_text(diagnosis) + "; but the run misbehaved", colour);
    for (const Explanation& one : diagnosis.passing) {
      text += paragraph("cause", core::printable(one.cause), colour);
      text += paragraph("remedy", core::printable(one.remedy), colour);
    }
  } else {
    const verdict::OutputResult& output = explained_output(diagnosis);
    text += paragraph("verdict", diagnosis.port + " is wrong" + failure_text(output), colour);
    if (diagnosis.kind == Diagnosis::Kind::explained) {
      const Explanation& best = diagnosis.passing.front();
      text += paragraph("cause", (best.is_consistent_only ? "perhaps: " : "") + core::printable(best.cause), colour);
      text += paragraph("evidence", evidence_text(diagnosis, best, output), colour);
      if (diagnosis.passing.size() > 1) {
        text += paragraph(
            "or", "these tensors do not tell it from: " + names_of(std::span(diagnosis.passing).subspan(1)), colour);
      }
      text += paragraph("remedy", core::printable(best.remedy), colour);
    } else {
      text += paragraph("cause", closest_text(diagnosis), colour);
    }
    if (!diagnosis.excluded.empty()) {
      text += paragraph("not", excluded_text(diagnosis, verbose), colour);
    }
  }
  for (const std::string& note : around.notes) {
    text += paragraph("note", core::printable(note), colour);
  }
  if (diagnosis.kind != Diagnosis::Kind::correct) {
    text += paint(fmt::format("{:<{}}", "again", kLabel), Colour::bold, colour) + around.again +
            "\n";  // in one line, to be pasted
  }
  return text;
}

namespace {

std::string verdict_line(const Diagnosis& diagnosis) {
  switch (diagnosis.kind) {
    case Diagnosis::Kind::correct:
      return diagnosis.declared.failing.empty()
                 ? "correct: every gate passes"
                 : fmt::format("correct, but {}", core::printable(diagnosis.declared.failing));
    case Diagnosis::Kind::undecided:
      return fmt::format("undecided: {}", core::printable(diagnosis.declared.failing));
    case Diagnosis::Kind::misbehaved:
    case Diagnosis::Kind::explained:
    case Diagnosis::Kind::unexplained:
      break;
  }
  const bool explained = !diagnosis.passing.empty();
  const std::string cause = explained ? core::printable(diagnosis.passing.front().cause) : closest_text(diagnosis);
  return fmt::format("{}: {}{}", diagnosis.port.empty() ? "the run misbehaved" : diagnosis.port + " is wrong",
                     explained && diagnosis.passing.front().is_consistent_only ? "perhaps: " : "", cause);
}

}  // namespace

std::string diagnosis_line(const Diagnosis& diagnosis, const std::string& notice) {
  return verdict_line(diagnosis) + (notice.empty() ? "\n" : fmt::format(" ({})\n", notice));
}

}  // namespace numcheck::app
