// Hypotheses about parameters: another variant of the formula, another number in it.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/strings.hpp"
#include "diagnose/hypothesis.hpp"
#include "diagnose/number_fit.hpp"
#include "diagnose/typed_numbers.hpp"
#include "op/attention_params.hpp"
#include "op/field.hpp"

namespace numcheck::diagnose {
namespace {

using op::Field;
using op::FieldKind;

/// Whether the case can be computed from the given inputs, and has the output as it is given.
bool can_be(const Evidence& evidence, const op::Params& params) {
  const plan::Case& c = evidence.subject.c;
  const bool as_many_passes = op::passes_of(*c.op, params).size() == op::passes_of(*c.op, c.params).size();
  if (!as_many_passes || !c.op->check(params, *c.mode).empty()) {
    return false;
  }
  const std::vector<op::Port> declared = c.op->ports(c.params, *c.mode);
  const op::Port& before = op::port_named(declared, evidence.port);
  bool same_output = false;
  for (const op::Port& port : c.op->ports(params, *c.mode)) {
    const op::Port* known = op::find_port(declared, port.name);
    const bool is_given = evidence.subject.inputs.has(port);
    if (must_be_given(port) && (known == nullptr || !is_given)) {
      return false;
    }
    if (is_given && (known == nullptr || known->elements() != port.elements())) {
      return false;
    }
    same_output = same_output ||
                  (port.name == evidence.port && port.elements() == before.elements() && port.dtype == before.dtype);
  }
  return same_output;
}

/// The parameters with another value of a field; of C that is not read, nobody asks that it is D in memory.
op::Params changed_to(const plan::Case& c, std::size_t field, const op::Value& value) {
  op::Params params = c.params;
  params[field] = value;
  for (std::size_t i = 0; i < params.size() && !c.op->check(params, *c.mode).empty(); ++i) {
    const Field& other = c.op->fields()[i];
    params[i] = other.storage_only && other.kind == FieldKind::boolean ? other.fallback : params[i];
  }
  return params;
}

/// Whether it is a scale of 0, which stands for another number.
bool is_scale_of_attention(const plan::Case& c, std::size_t field) {
  const auto* number = std::get_if<double>(&c.params[field]);
  return number != nullptr && *number == 0 && c.op->fields()[field].name == "scale" &&
         c.op->name.starts_with("attention");
}

/// The number that is declared.
double declared_number(const plan::Case& c, std::size_t field) {
  return is_scale_of_attention(c, field) ? op::from_params<op::AttentionParams>(c.params).factor()
                                         : std::get<double>(c.params[field]);
}

std::string declared_text(const plan::Case& c, std::size_t field) {
  return is_scale_of_attention(c, field) ? fmt::format("{:.6g} = 1 / sqrt(d)", declared_number(c, field))
                                         : op::param_text(c.params[field]);
}

Hypothesis with_value(const Evidence& evidence, std::size_t field, const op::Value& value) {
  const Subject& subject = evidence.subject;
  const Field& f = subject.c.op->fields()[field];
  Trial trial = as_declared(subject);
  trial.c.params = changed_to(subject.c, field, value);
  const std::string text = op::param_text(value);
  return {fmt::format("{}={}", f.name, text), std::string(f.name),
          fmt::format("it was computed with {} = {}, not {} ({})", f.name, text,
                      declared_text(subject.declared == nullptr ? subject.c : *subject.declared, field), f.doc),
          fmt::format("Set {} to what is meant on both sides; if {} is right, give --param {}={}.", f.name, text,
                      f.name, text),
          std::move(trial)};
}

/// Counts that are tried in place of another.
std::array<std::int64_t, 4> other_counts(std::int64_t count) {
  return {count + 1, count - 1, 0, 1};
}

/// Every other value of switches and choices, and neighbours of counts.
std::vector<Hypothesis> other_variants(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  std::vector<Hypothesis> all;
  if (evidence.values.unpredictable) {
    return all;  // of numbers that are drawn, switches say which count, and none of them would explain any other number
  }
  for (std::size_t i = 0; i < c.params.size(); ++i) {
    const Field& field = c.op->fields()[i];
    std::vector<op::Value> values;
    if (field.storage_only) {
      continue;
    }
    if (field.kind == FieldKind::boolean) {
      values.emplace_back(!std::get<bool>(c.params[i]));
    } else if (field.kind == FieldKind::choice) {
      for (const std::string_view choice : field.choices) {
        values.emplace_back(std::string(choice));
      }
    } else if (field.kind == FieldKind::integer) {
      const std::int64_t value = std::get<std::int64_t>(c.params[i]);
      for (const std::int64_t other : other_counts(value)) {
        if (static_cast<double>(other) >= field.minimum && static_cast<double>(other) <= field.maximum) {
          values.emplace_back(other);
        }
      }
    }
    for (const op::Value& value : values) {
      op::Params params = c.params;
      params[i] = value;
      if (value != c.params[i] && can_be(evidence, params)) {
        all.push_back(with_value(evidence, i, value));
      }
    }
  }
  return all;
}

/// Formats that kernels hold numbers of the formula in.
constexpr std::array<std::pair<core::Dtype, std::string_view>, 2> kHolding = {
    {{core::Dtype::bf16, "BF16"}, {core::Dtype::fp16, "FP16"}}};

std::string held_text(double value, double number) {
  for (const auto& [format, spelled] : kHolding) {
    if (number == core::round_to(value, format)) {
      return fmt::format(": it was rounded to {}", spelled);
    }
  }
  return "";
}

/// Of the inverse of a number that people type, such as a temperature.
std::string inverse_text(double number) {
  constexpr std::size_t kShort = 4;  // 0.07, 12.5
  const std::string inverse = core::shortest(std::stod(fmt::format("{:.9g}", 1 / number)));
  const bool is_inverse = inverse.size() <= kShort && core::shortest(number).size() > 2 * kShort;
  return is_inverse ? fmt::format(": it is 1 / {}", inverse) : "";
}

/// What people type there.
std::vector<double> usual_numbers(const plan::Case& c, const Field& field) {
  constexpr std::array kUsual = {0.0, 1.0, 1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2};
  std::vector<double> numbers;
  if (field.name == "epsilon") {
    numbers.assign(kUsual.begin(), kUsual.end());
  }
  const auto channels = op::field_index(*c.op, "d");
  if (field.name == "scale" && channels.has_value()) {
    const auto d = static_cast<double>(std::get<std::int64_t>(c.params[*channels]));
    numbers.insert(numbers.end(), {1 / std::sqrt(d), 1, 1 / d});
  }
  return numbers;
}

/// How far a number that somebody typed may be from the one that fits: an op may have rounded it.
double typed_within(const plan::Case& c, std::size_t field) {
  const bool is_rounded = rounding_field(*c.op, field).has_value();
  return is_rounded ? std::max(kTypedNear, core::dtype_info(c.mode->first).unit_roundoff) : kTypedNear;
}

/// That number, where the op is declared to round it first and did not.
std::optional<Hypothesis> without_rounding(const Evidence& evidence, std::size_t field, double number) {
  const plan::Case& c = evidence.subject.c;
  const std::optional<std::size_t> rounding = rounding_field(*c.op, field);
  const op::Value ideal = std::string("ideal");
  if (!rounding.has_value() || c.params[*rounding] == ideal || core::round_to(number, c.mode->first) == number) {
    return std::nullopt;
  }
  Hypothesis hypothesis = with_value(evidence, field, number);
  hypothesis.trial.c.params[*rounding] = ideal;
  hypothesis.name += fmt::format(" + {}=ideal", c.op->fields()[*rounding].name);
  hypothesis.cause +=
      fmt::format(", and {} was not rounded to {}", c.op->fields()[field].name, core::dtype_info(c.mode->first).name);
  return hypothesis;
}

/// Other numbers in the formula: the usual ones, and the one that fits.
std::vector<Hypothesis> other_numbers(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  std::vector<Hypothesis> all;
  for (std::size_t i = 0; i < c.params.size(); ++i) {
    const Field& field = c.op->fields()[i];
    if (field.kind != FieldKind::number || field.storage_only) {
      continue;
    }
    const double value = declared_number(c, i);
    std::vector<double> numbers = usual_numbers(c, field);
    const bool is_small = field.name == "epsilon";
    const std::array<double, 2> held = {core::round_to(value, kHolding[0].first),
                                        core::round_to(value, kHolding[1].first)};
    numbers.insert(numbers.end(), held.begin(), held.end());
    const std::vector<double> usual = numbers;
    for (const double factor : {0.0, -1.0, 10.0, 0.1, 2.0, 0.5}) {
      numbers.push_back(value * factor);
    }
    op::Params any = c.params;
    any[i] = std::clamp(value == 0 ? 1e-3 : value * 2, field.minimum, field.maximum);
    if (!can_be(evidence, any)) {
      continue;
    }
    double raw = std::numeric_limits<double>::quiet_NaN();
    // Closer than that it is no number that somebody typed, but a systematic error, for which there is another row.
    constexpr double kSame = 0x1p-12;
    if (const double best = fitted_number(evidence, i, value); std::abs(best - value) > kSame * std::abs(value)) {
      const std::vector<double> near = typed_near(best, typed_within(c, i));
      raw = near.size() < 2 ? raw : near.back();
      constexpr double kNothing = 0.01;
      const bool may_be_zero = std::abs(best) < kNothing * std::abs(value);
      numbers.insert(may_be_zero ? numbers.end() : numbers.begin(), near.begin(), near.end());
      if (field.minimum == 0 && !is_small) {  // often: not at all, which is like a large number where it is a limit
        numbers.insert(numbers.begin(), 0.0);
      }
    }
    numbers.insert(numbers.begin(), held.begin(), held.end());  // before what is fitted to them
    std::vector<double> seen = {value, std::get<double>(c.params[i])};
    for (const double number : numbers) {
      if (number >= field.minimum && number <= field.maximum && std::ranges::find(seen, number) == seen.end() &&
          can_be(evidence, changed_to(c, i, number))) {
        seen.push_back(number);
        std::vector<Hypothesis> ways = {with_value(evidence, i, number)};
        ways.back().cause += held_text(value, number) + inverse_text(number);
        if (std::optional<Hypothesis> other = without_rounding(evidence, i, number); other.has_value()) {
          ways.push_back(*std::move(other));
        }
        for (Hypothesis& way : ways) {
          way.is_fitted = number == raw;
          way.is_usual = std::ranges::find(usual, number) != usual.end();
          way.is_measured = !way.is_usual;
          all.push_back(std::move(way));
        }
      }
    }
  }
  return all;
}

/// True of a mistake that other_variants() has as well: another value of one parameter.
bool is_variant(const op::Mistake& mistake, const op::Params& declared) {
  std::size_t changed = 0;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (mistake.params[i] == declared[i]) {
      continue;
    }
    ++changed;
    constexpr double kNone = 1e3;  // so many times larger: a limit that stands for none, which no fit comes near
    const auto* count = std::get_if<std::int64_t>(&declared[i]);
    const auto* number = std::get_if<double>(&declared[i]);
    const auto is_taken = [&](std::int64_t other) { return mistake.params[i] == op::Value(other); };
    if (count != nullptr && std::ranges::none_of(other_counts(*count), is_taken)) {
      return false;
    }
    if (number != nullptr && std::get<double>(mistake.params[i]) > kNone * std::max(1.0, std::abs(*number))) {
      return false;
    }
  }
  return mistake.then == nullptr && mistake.instead == nullptr && changed < 2;
}

/// Mistakes that kernels are known to make, of which the op's reference has a list, where they are no other variants.
std::vector<Hypothesis> known_mistakes(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  const plan::Case& c = subject.c;
  const prepare::CatalogRow* row = prepare::find_row(subject.catalog, c.op->name);
  std::vector<Hypothesis> all;
  if (row->reference.mistakes == nullptr) {
    return all;
  }
  for (const op::Mistake& mistake : row->reference.mistakes(c.params, *c.mode)) {
    if (is_variant(mistake, c.params) || !can_be(evidence, mistake.params)) {
      continue;
    }
    Trial trial = as_declared(subject);
    trial.c.params = mistake.params;
    trial.instead = mistake.instead;
    if (mistake.then != nullptr) {
      trial.then = change_each(evidence, mistake.then);
    }
    all.push_back({mistake.name,
                   {},
                   fmt::format("a known mistake: {} (the outputs tell {})", mistake.name, mistake.text),
                   fmt::format("Compare the code with the formula that te-numcheck explain {} shows.", c.op->name),
                   std::move(trial)});
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"PARAMETER=VALUE", "another variant of the formula: mask=causal, zero_centered_gamma=true",
                 &other_variants},
    CatalogueRow{"MISTAKE", "mistakes that kernels are known to make: gelu_erf", &known_mistakes},
    CatalogueRow{"PARAMETER=NUMBER", "another number in the formula, fitted: epsilon=1e-06, alpha=0.125",
                 &other_numbers}};

}  // namespace

std::span<const CatalogueRow> formula_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
