// Hypotheses about scales of tensors in FP8: left out, applied twice, inverted, that of another tensor.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "diagnose/hypothesis.hpp"
#include "diagnose/scale_facts.hpp"

namespace numcheck::diagnose {
namespace {

/// Another number in its place.
struct Instead {
  double number = 1;
  std::string what;   ///< the end of the hypothesis' name: "left_out"
  std::string cause;  ///< a sentence
};

/// A number of FP32 that has this inverse.
double of_inverse(double inverse) {
  const auto number = static_cast<float>(1 / inverse);
  for (const float near : {number, std::nextafter(number, 0.0F), std::nextafter(number, INFINITY)}) {
    if (1 / near == static_cast<float>(inverse)) {
      return static_cast<double>(near);
    }
  }
  return static_cast<double>(number);
}

/// What takes the place of a scale of what is stored.
std::vector<Instead> instead_of_stored(const Evidence& evidence, const Scale& scale) {
  const double s = scale.number, largest = core::dtype_info(port_of(evidence).dtype).max_finite;
  const std::string_view name = scale.port.name, of = scale.of;
  std::vector<Instead> all = {
      {1, "left_out", fmt::format("{} ({:.6g}) was left out: the codes of {} are those of a scale of 1", name, s, of)},
      {s * s, "applied_twice", fmt::format("{} ({:.6g}) was applied twice to {}", name, s, of)},
      {1 / s, "inverted", fmt::format("{} was multiplied by 1 / {}, not by it", of, name)},
      {std::exp2(std::floor(std::log2(s))), "rounded_to_power_of_2",
       fmt::format("{} ({:.6g}) was rounded down to a power of two before {} was multiplied by it", name, s, of)}};
  const auto of_output = [&](std::string_view port, double number) {
    all.push_back(
        {number, fmt::format("of_{}", port),
         fmt::format("the codes of {} are of the scale that follows from {}, {:.6g}: {:.6g} times {} ({:.6g})", of,
                     port, number, number / s, name, s)});
  };
  if (evidence.subject.c.op->name == "quantize") {
    if (const std::optional<double> inverse = given_output(evidence.subject, "scale_inv"); inverse.has_value()) {
      of_output("scale_inv", of_inverse(*inverse));
    }
  }
  for (const op::Port& port : evidence.subject.c.op->ports(evidence.subject.c.params, *evidence.subject.c.mode)) {
    const std::optional<double> amax =
        port.role == op::Role::amax ? given_output(evidence.subject, port.name) : std::nullopt;
    if (amax.has_value()) {
      of_output(port.name, as_float(largest / *amax));
    }
  }
  return all;
}

/// What takes the place of a factor of an operand's codes.
std::vector<Instead> instead_of_descale(const Scale& scale, const std::vector<Scale>& others) {
  const double s = scale.number;
  const std::string_view name = scale.port.name, of = scale.of;
  std::vector<Instead> all = {
      {1, "left_out", fmt::format("{} ({:.6g}) was left out: the codes of {} were taken for its values", name, s, of)},
      {s * s, "applied_twice", fmt::format("{} ({:.6g}) was applied twice", name, s)},
      {1 / s, "inverted", fmt::format("codes of {} were multiplied by 1 / {}, not by it", of, name)}};
  for (const Scale& other : others) {
    if (other.when == AppliedTo::operand && other.port.name != scale.port.name) {
      all.push_back({other.number, fmt::format("is_{}", other.port.name),
                     fmt::format("{} ({:.6g}) was used for {} ({:.6g})", other.port.name, other.number, name, s)});
    }
  }
  return all;
}

/// Whether a result that is proportional to the scale may be of that number: two causes leave it within this factor.
bool may_be(double number, double declared, std::optional<double> factor) {
  constexpr double kFar = 2;
  const double ratio = factor.has_value() ? number / declared / *factor : 1;
  return is_scale(number) && number != declared && ratio < kFar && ratio > 1 / kFar;
}

bool has_own_mistake(const Evidence& evidence, const Instead& instead) {
  const Subject& subject = evidence.subject;
  const op::Reference& reference = prepare::find_row(subject.catalog, subject.c.op->name)->reference;
  return instead.what == "left_out" && reference.mistakes != nullptr &&
         std::ranges::any_of(reference.mistakes(subject.c.params, *subject.c.mode),
                             [](const op::Mistake& mistake) { return mistake.name == "scale_ignored"; });
}

/// In which another number than the declared one takes the place of the scale: what kernels are known to use there.
std::vector<Hypothesis> misused(const Evidence& evidence) {
  std::vector<Hypothesis> all;
  const std::vector<Scale> scales = scales_of(evidence);
  constexpr double kNearlyParallel = 0.9;  // then nothing else is worth a trial
  const std::optional<double> factor = factor_of_output(evidence, kNearlyParallel);
  std::vector<const Scale*> operands;
  for (const Scale& scale : scales) {
    const std::optional<ScaleRange> range = range_of(evidence, scale);
    std::vector<double> seen;
    for (const Instead& instead :
         scale.when == AppliedTo::stored ? instead_of_stored(evidence, scale) : instead_of_descale(scale, scales)) {
      const auto is_seen = [&](double number) { return std::abs(number / instead.number - 1) < kSameFloat; };
      if (may_be(instead.number, scale.number, factor) && std::ranges::none_of(seen, is_seen) &&
          !is_seen(scale.number) && !has_own_mistake(evidence, instead)) {
        seen.push_back(instead.number);
        const std::string name = fmt::format("{}_{}", scale.port.name, instead.what);
        all.push_back(with_scale(evidence, scale, instead.number, name, instead.cause));
        all.back().family = name;
        // Where every bit counts, so does in which order FP32 operations made the number.
        if (range.has_value() && evidence.values.bit_exact && range->has(instead.number, kSameFloat)) {
          all.push_back(with_scale(evidence, scale, range->middle(), name, instead.cause));
          all.back().family = name;
        }
      }
    }
    if (scale.when == AppliedTo::operand) {
      operands.push_back(&scale);
    }
  }
  const bool are_two = operands.size() == 2 && operands[0]->number != 1 && operands[1]->number != 1;
  if (are_two && may_be(1, operands[0]->number * operands[1]->number, factor)) {
    const Scale &a = *operands[0], &b = *operands[1];
    all.push_back(
        with_scale(evidence, a, 1, fmt::format("{}_and_{}_left_out", a.port.name, b.port.name),
                   fmt::format("{} and {} were left out: the product is that of the codes", a.port.name, b.port.name)));
    all.back().trial.inputs.set(std::string(b.port.name), one_number(1));
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"SCALE_left_out, SCALE_applied_twice, SCALE_inverted, SCALE_is_SCALE",
                 "a scale of an FP8 tensor that was left out, applied twice, inverted, or that of another tensor: "
                 "a_scale_inv_left_out",
                 &misused}};

}  // namespace

std::span<const CatalogueRow> scale_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
