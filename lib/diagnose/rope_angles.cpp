// Hypotheses about the angles of a rotary embedding: those of another base, of other positions, of fewer channels. The output
// tells by which angle each pair was turned.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "diagnose/hypothesis.hpp"
#include "diagnose/typed_numbers.hpp"
#include "op/rope.hpp"

namespace numcheck::diagnose {
namespace {

/// (start + factor row) base^(-2 j / rotary) for pair j of a row.
struct Angles {
  double base = 10000, start = 0, factor = 1;

  [[nodiscard]] double of(std::size_t row, std::size_t pair, double rotary) const {
    return (start + factor * static_cast<double>(row)) * std::pow(base, -2 * static_cast<double>(pair) / rotary);
  }
};

/// Where a pair of channels is, and its angle.
struct Layout {
  op::RopeParams p;

  [[nodiscard]] std::size_t rotated() const { return static_cast<std::size_t>(p.rotated()); }
  [[nodiscard]] std::size_t pairs() const { return rotated() / 2; }
  [[nodiscard]] std::size_t first(std::size_t pair) const { return p.interleaved ? 2 * pair : pair; }
  [[nodiscard]] std::size_t second(std::size_t pair) const { return p.interleaved ? 2 * pair + 1 : pair + pairs(); }
  [[nodiscard]] std::size_t position(std::size_t row) const {
    const auto token = static_cast<std::int64_t>(row) / p.heads;
    return static_cast<std::size_t>(p.layout == "sbhd" ? token / p.batch : token % p.seq);
  }
  [[nodiscard]] core::Buffer<double> filled(const Angles& angles) const {
    const std::size_t rows = static_cast<std::size_t>(p.start + p.seq);
    core::Buffer<double> freqs(rows * rotated());
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t pair = 0; pair < pairs(); ++pair) {
        const auto angle =
            static_cast<double>(static_cast<float>(angles.of(row, pair, static_cast<double>(rotated()))));
        freqs[row * rotated() + first(pair)] = freqs[row * rotated() + second(pair)] = angle;
      }
    }
    return freqs;
  }
};

/// What the given angles are made from; nothing if they are not of this form.
std::optional<Angles> angles_of(const Layout& layout, const core::Buffer<double>& freqs) {
  constexpr double kSame = 1e-4;
  const std::size_t rotated = layout.rotated();
  const auto at = [&](std::size_t row, std::size_t pair) { return freqs[row * rotated + layout.first(pair)]; };
  const std::size_t rows = freqs.size() / rotated;
  if (rows < 2 || layout.pairs() < 2) {
    return std::nullopt;
  }
  Angles found{.start = at(0, 0), .factor = at(1, 0) - at(0, 0)};
  const double ratio = (at(rows - 1, 1)) / at(rows - 1, 0);
  found.base = std::pow(ratio, -static_cast<double>(rotated) / 2);
  for (std::size_t row = 0; row < rows; row += std::max<std::size_t>(1, rows / 7)) {
    for (std::size_t pair = 0; pair < layout.pairs(); ++pair) {
      const double angle = found.of(row, pair, static_cast<double>(rotated));
      if (!(std::fabs(angle - at(row, pair)) <= kSame * std::max(std::fabs(angle), kSame))) {
        return std::nullopt;
      }
    }
  }
  return found;
}

/// By how much the pairs of a position were turned, between -pi and pi; over all heads and sequences.
class Turned {
 public:
  Turned(const Layout& layout, std::span<const double> from, std::span<const double> to, bool backward)
      : layout_(layout), sign_(backward ? -1 : 1), from_(from), to_(to) {}

  [[nodiscard]] double angle(std::size_t position, std::size_t pair) const {
    const auto dim = static_cast<std::size_t>(layout_.p.dim);
    const std::size_t i = layout_.first(pair), j = layout_.second(pair);
    double cosine = 0, sine = 0;
    for (std::size_t row = 0; row < from_.size() / dim; ++row) {
      if (layout_.position(row) == position) {
        const double *x = &from_[row * dim], *y = &to_[row * dim];
        cosine += x[i] * y[i] + x[j] * y[j];
        sine += x[i] * y[j] - x[j] * y[i];
      }
    }
    return sign_ * std::atan2(sine, cosine);
  }

 private:
  const Layout& layout_;
  double sign_;
  std::span<const double> from_, to_;
};

prepare::SharedDoubles input_of(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  return evidence.subject.inputs.of(
      op::port_named(c.op->ports(c.params, *c.mode), c.op->name == "rope_bwd" ? "dy" : "x"));
}

/// Frameworks round inverse frequencies, and angles again: by two ulps of FP32 they may differ from those that are expected.
decltype(Trial::then) allow_angles(const Evidence& evidence, const Layout& layout, prepare::SharedDoubles x,
                                   std::shared_ptr<const core::Buffer<double>> freqs) {
  return change_of(evidence, [layout, x = std::move(x), freqs = std::move(freqs)](op::OutputValues& output,
                                                                                  op::OutputYardsticks*) {
    constexpr double kOff = 0x1p-22;
    const auto dim = static_cast<std::size_t>(layout.p.dim);
    for (std::size_t row = 0; row < output.value.size() / dim && !output.magnitude.empty(); ++row) {
      const std::size_t angles = (static_cast<std::size_t>(layout.p.start) + layout.position(row)) * layout.rotated();
      for (std::size_t pair = 0; pair < layout.pairs(); ++pair) {
        const std::size_t i = row * dim + layout.first(pair), j = row * dim + layout.second(pair);
        const auto off =
            static_cast<float>(kOff * std::fabs((*freqs)[angles + layout.first(pair)]) * std::hypot((*x)[i], (*x)[j]));
        for (const std::size_t at : {i, j}) {
          output.magnitude[at] += off;
          output.deviation[at] = std::hypot(output.deviation[at], off / 2);
        }
      }
    }
  });
}

Hypothesis with_angles(const Evidence& evidence, const Layout& layout, const Angles& angles, std::string name,
                       std::string cause) {
  Trial trial = as_declared(evidence.subject);
  auto freqs = std::make_shared<core::Buffer<double>>(layout.filled(angles));
  trial.c.params[*op::field_index(*trial.c.op, "rotary")] = layout.p.rotary;
  trial.then = allow_angles(evidence, layout, input_of(evidence), freqs);
  trial.inputs.set("freqs", std::move(freqs));
  return {.name = std::move(name),
          .family = {},
          .cause = std::move(cause),
          .remedy =
              "Compare the settings of the rotary embedding on both sides (rope_theta, rope_scaling, "
              "partial_rotary_factor, position_ids), and give the freqs that were used.",
          .trial = std::move(trial),
          .is_measured = true};
}

/// The base that the output tells; NaN if it tells none. First of a pair that turns fast, by which a small part of a turn is
/// known from the second position alone, then of one that a later position has turned once at most.
double base_of(const Layout& layout, const Angles& declared, const Turned& turned) {
  const auto rotary = static_cast<double>(layout.rotated());
  const auto from = [&](std::size_t position, std::size_t pair) {
    const double turns = declared.start + declared.factor * static_cast<double>(position);
    return std::pow(turned.angle(position, pair) / turns, -rotary / (2 * static_cast<double>(pair)));
  };
  double base = from(1, std::max<std::size_t>(1, layout.pairs() / 8));
  const auto last = static_cast<std::size_t>(layout.p.seq - 1);
  constexpr double kLargest = 2.5;  // safely less than half a turn
  for (std::size_t pair = 1; pair < layout.pairs() && base > 1; ++pair) {
    if (Angles{base, declared.start, declared.factor}.of(last, pair, rotary) < kLargest) {
      const double finer = from(last, pair);
      return std::fabs(finer / base - 1) < 0.5 ? finer : base;
    }
  }
  return base;
}

/// What people would have typed, and the number itself if it is none of these.
std::vector<double> candidates(double measured, std::span<const double> usual, double within) {
  std::vector<double> all;
  for (const double number : usual) {
    if (std::fabs(number / measured - 1) < within) {
      all.push_back(number);
    }
  }
  for (const double number : all.empty() ? typed_near(measured) : std::vector<double>()) {
    constexpr double kSameName = 1e-6;  // names have six digits
    const auto is_same = [number](double other) { return std::fabs(number / other - 1) < kSameName; };
    if (std::ranges::none_of(all, is_same)) {
      all.push_back(number);
    }
  }
  return all;
}

/// What is known of a case.
struct Known {
  const Evidence& evidence;
  const Layout& layout;
  const Angles& declared;
  const Turned& turned;

  [[nodiscard]] Hypothesis with(const Angles& angles, std::string name, std::string cause) const {
    return with_angles(evidence, layout, angles, std::move(name), std::move(cause));
  }
};

bool differ(double a, double b) {
  constexpr double kSame = 1e-3;
  return std::fabs(a / b - 1) > kSame;
}

void add_bases(const Known& known, std::vector<Hypothesis>& all) {
  constexpr std::array kBases = {1e4, 2e4, 5e4, 1e5, 1.5e5, 2.5e5, 5e5, 1e6, 2e6, 5e6, 8e6, 1e7};
  const Angles& declared = known.declared;
  const double base = base_of(known.layout, declared, known.turned);
  if (!(base > 1)) {
    return;
  }
  for (const double typed : candidates(base, kBases, 0.03)) {
    if (differ(typed, declared.base)) {
      all.push_back(known.with({typed, declared.start, declared.factor}, fmt::format("freqs_of_base={:g}", typed),
                               fmt::format("the angles are those of base {:g}, not {:g}", typed, declared.base)));
    }
  }
}

/// The first position, from the pair that turns slowest, which has turned once at most, to the one that tells it best.
double start_of(const Known& known) {
  constexpr double kTurn = 2 * std::numbers::pi;
  const auto rotary = static_cast<double>(known.layout.rotated());
  double start = 0;
  for (std::size_t pair = known.layout.pairs(); pair-- > 0;) {
    const double speed = Angles{known.declared.base, 1, 0}.of(0, pair, rotary), angle = known.turned.angle(0, pair);
    start = (angle + kTurn * std::round((start * speed - angle) / kTurn)) / speed;
  }
  return start;
}

void add_positions(const Known& known, std::vector<Hypothesis>& all) {
  constexpr std::array kFactors = {0.125, 0.25, 0.5, 2.0, 4.0, 8.0, 1.0 / 3};
  const Angles& declared = known.declared;
  const double factor = known.turned.angle(1, 0) - known.turned.angle(0, 0);
  if (factor > 0) {
    for (const double typed : candidates(factor, kFactors, 0.02)) {
      if (differ(typed, declared.factor)) {
        all.push_back(known.with({declared.base, declared.start, typed}, fmt::format("positions_scaled={:g}", typed),
                                 fmt::format("positions were multiplied by {:g} before the angles were taken", typed)));
      }
    }
  }
  const double near = std::round(start_of(known));
  for (const double start : {near, 1.0, -1.0}) {
    if (std::isfinite(start) && start != declared.start) {
      all.push_back(known.with({declared.base, start, declared.factor}, fmt::format("positions_start_at={:g}", start),
                               fmt::format("the first position is {:g}, not {:g}", start, declared.start)));
      all.back().family = "positions_start_at";
    }
  }
}

void add_parts(const Known& known, std::vector<Hypothesis>& all) {
  const op::RopeParams& p = known.layout.p;
  for (const std::int64_t part : {p.dim / 4, p.dim / 2, p.dim * 3 / 4, p.dim}) {
    Layout other = known.layout;
    other.p.rotary = part;
    if (part >= 2 && part % 2 == 0 && part != p.rotated()) {
      all.push_back(with_angles(known.evidence, other, known.declared, fmt::format("rotary={}", part),
                                fmt::format("{} of {} channels were rotated, not {}", part, p.dim, p.rotated())));
    }
  }
}

std::vector<Hypothesis> other_angles(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const bool backward = c.op->name == "rope_bwd";
  if ((c.op->name != "rope_fwd" && !backward) || !evidence.sample.all()) {
    return {};
  }
  const Layout layout{op::from_params<op::RopeParams>(c.params)};
  const op::Port freqs = op::port_named(c.op->ports(c.params, *c.mode), "freqs");
  const std::optional<Angles> declared =
      layout.p.seq < 2 ? std::nullopt : angles_of(layout, *evidence.subject.inputs.of(freqs));
  if (!declared.has_value()) {
    return {};
  }
  const prepare::SharedDoubles x = input_of(evidence);
  const Turned turned(layout, x->span(), evidence.delivered, backward);
  const Known known{evidence, layout, *declared, turned};
  std::vector<Hypothesis> all;
  add_bases(known, all);
  add_positions(known, all);
  add_parts(known, all);
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"freqs_of_base=NUMBER, positions_scaled=NUMBER, positions_start_at=NUMBER, rotary=NUMBER",
                 "a rotary embedding with other angles, which the output tells", &other_angles}};

}  // namespace

std::span<const CatalogueRow> rope_angle_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
