#include "reference/nvfp4_stochastic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/buffer.hpp"
#include "op/quantize.hpp"
#include "reference/chance.hpp"
#include "reference/nvfp4.hpp"
#include "reference/nvfp4_layout.hpp"

namespace numcheck::reference {
namespace {

constexpr std::string_view kImpossible = "impossible codes", kShare = "share rounded up",
                           kCorrelated = "correlated draws";
constexpr unsigned kMostCode = 7, kSign = 8, kCodeBits = 4;
constexpr std::array kMagnitudes = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
constexpr double kDraws = 256;  ///< values of eight random bits

/// What may become of an element.
struct Choice {
  unsigned lower = 0;   ///< code with its sign
  double fraction = 0;  ///< of the way to the next code; 0: there is no choice
  [[nodiscard]] double probability() const { return std::floor(kDraws * fraction) / kDraws; }
};

Choice choice_of(double v) {
  if (std::isnan(v)) {
    return {kMostCode, 0};
  }
  const unsigned sign = std::signbit(v) ? kSign : 0;
  const double magnitude = std::fabs(v);
  unsigned code = kMostCode;
  while (kMagnitudes.at(code) > magnitude) {
    --code;
  }
  if (code == kMostCode) {
    return {code | sign, 0};
  }
  const double lower = kMagnitudes.at(code);
  return {code | sign, (magnitude - lower) / (kMagnitudes.at(code + 1) - lower)};
}

unsigned code_at(std::span<const double> bytes, std::size_t i) {
  const auto byte = static_cast<unsigned>(bytes[i / 2]);
  return i % 2 == 0 ? byte & ((1U << kCodeBits) - 1) : byte >> kCodeBits;
}

/// Calls back with each layout that was delivered: visit(codes, what they are made of, its scaled elements).
template <class Visit>
void for_each_layout(const op::FindingRequest& request, const Visit& visit) {
  const auto p = op::from_params<op::QuantizeParams>(*request.params);
  // Whatever the case's layout: the parameters are those of all cases that share the reference.
  for (const op::BlockLayout& layout : {p.rowwise(), p.columnwise()}) {
    const auto codes = std::ranges::find(request.outputs, layout.codes, &op::Delivered::port);
    if (codes != request.outputs.end() && !codes->value.empty()) {
      const Nvfp4Layout source(p, request.inputs, layout);
      visit(*codes, source, source.scaled());
    }
  }
}

/// Sum of u - p of some elements.
struct Group {
  double sum = 0, variance = 0, ups = 0, expected = 0, count = 0;

  void add(double u, double p) {
    sum += u - p;
    variance += p * (1 - p);
    ups += u;
    expected += p;
    count += 1;
  }
};

class Groups {
 public:
  Groups(std::size_t lines, std::size_t length)
      : length_(length),
        tiles_across_((length + kTile - 1) / kTile),
        first_position_(kFirstLine + 2 * lines),
        first_tile_(first_position_ + 2 * length),
        all_(first_tile_ + 2 * tiles_across_ * ((lines + kTile - 1) / kTile)) {}

  void add(std::size_t i, const Choice& choice, bool up) {
    constexpr double kHalf = 0.5;
    const double p = choice.probability(), u = up ? 1 : 0;
    const auto part = static_cast<std::size_t>(kParts * choice.fraction);
    const std::size_t line = i / length_, position = i % length_;
    all_.at(0).add(u, p);
    all_.at(1 + (choice.lower >= kSign ? 1 : 0)).add(u, p);
    all_.at(kFirstPlace + position % kPlaces).add(u, p);
    all_.at(kFirstPart + choice.lower % kSign * kParts + part).add(u, p);
    for (const std::size_t region : {kFirstLine + 2 * line, first_position_ + 2 * position,
                                     first_tile_ + 2 * (line / kTile * tiles_across_ + position / kTile)}) {
      all_.at(region).add(u, p);
      all_.at(region + 1).add(p < kHalf ? 1 - u : u, std::max(p, 1 - p));
    }
  }

  /// The largest sum over what chance makes of it, and what it is of.
  struct Worst {
    double measured = 0;
    std::string text;
  };
  [[nodiscard]] Worst worst() const {
    Worst found;
    std::size_t at = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const double limit = exceeded_by_chance(all_.at(i).variance, 1, kGateOneIn * static_cast<double>(all_.size()));
      if (const double ratio = std::fabs(all_.at(i).sum) / limit; ratio > found.measured) {
        found.measured = ratio;
        at = i;
      }
    }
    const Group& group = all_.at(at);
    const double count = std::max(1.0, group.count);
    const bool to_likelier = at >= kFirstLine && (at - kFirstLine) % 2 != 0;
    found.text = fmt::format("{} are rounded {} in {:.4f} of {:.0f} cases; with eight random bits in {:.4f}",
                             name_of(at), to_likelier ? "to the nearer number" : "away from zero", group.ups / count,
                             group.count, group.expected / count);
    return found;
  }

 private:
  static constexpr std::size_t kPlaces = 16, kParts = 16, kTile = 32;
  static constexpr std::size_t kFirstPlace = 3, kFirstPart = kFirstPlace + kPlaces;
  static constexpr std::size_t kFirstLine = kFirstPart + kMostCode * kParts;

  [[nodiscard]] std::string name_of(std::size_t group) const {
    if (group >= first_tile_) {
      const std::size_t tile = (group - first_tile_) / 2;
      return fmt::format("elements of lines from {} and positions from {}, {} of each", tile / tiles_across_ * kTile,
                         tile % tiles_across_ * kTile, kTile);
    }
    if (group >= first_position_) {
      return fmt::format("elements at position {} of their line", (group - first_position_) / 2);
    }
    if (group >= kFirstLine) {
      return fmt::format("elements of line {}", (group - kFirstLine) / 2);
    }
    if (group < kFirstPlace) {
      constexpr std::array kNames = {"elements", "positive elements", "negative elements"};
      return kNames.at(group);
    }
    if (group < kFirstPart) {
      return fmt::format("elements number {} of their block", group - kFirstPlace);
    }
    const std::size_t lower = (group - kFirstPart) / kParts, part = (group - kFirstPart) % kParts;
    return fmt::format("elements between {} and {} that are {}/16 to {}/16 of the way", kMagnitudes.at(lower),
                       kMagnitudes.at(lower + 1), part, part + 1);
  }

  std::size_t length_, tiles_across_, first_position_, first_tile_;
  std::vector<Group> all_;
};

/// u - p of every element, and the bound of its magnitude and its variance.
struct Residuals {
  std::vector<float> value, bound, variance;
};

/// At the distances at which kernels share or reuse random bits: within a word, a block, and lines or tiles.
Groups::Worst correlation(const Residuals& of, std::size_t length) {
  constexpr std::size_t kLongest = 4096;  // and 512 lines
  std::vector<std::size_t> distances = {1, 2, 3, 4};
  for (std::size_t distance = 8; distance <= kLongest; distance *= 2) {
    distances.push_back(distance);
    distances.push_back(distance / 8 * length);
  }
  Groups::Worst found{0, "no two draws are the same at a fixed distance"};
  for (const std::size_t distance : distances) {
    double sum = 0, variance = 0;
    for (std::size_t i = 0; i + distance < of.value.size(); ++i) {
      const double bound = of.bound[i];
      sum += static_cast<double>(of.value[i]) * of.value[i + distance];
      variance += bound * bound * of.variance[i + distance];
    }
    const double limit = exceeded_by_chance(variance, 1, kGateOneIn * static_cast<double>(distances.size()));
    if (const double ratio = std::fabs(sum) / limit; ratio > found.measured) {
      found = {ratio, fmt::format("of elements {} apart", distance)};
    }
  }
  return found;
}

struct Judged {
  double impossible = 0;
  Groups::Worst share, correlated;
};

/// `code(i)`: of element i.
template <class Code>
Judged judge(const Nvfp4Layout& source, std::span<const double> scaled, const Code& code) {
  const auto length = static_cast<std::size_t>(source.matrix().length);
  Judged judged;
  Groups groups(static_cast<std::size_t>(source.matrix().lines), length);
  Residuals residuals{std::vector<float>(scaled.size()), std::vector<float>(scaled.size()),
                      std::vector<float>(scaled.size())};
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    if (source.is_uncertain(i)) {
      continue;
    }
    const Choice choice = choice_of(scaled[i]);
    const unsigned stored = code(i, choice);
    const bool up = choice.fraction > 0 && stored == choice.lower + 1;
    if (!up && stored != choice.lower) {
      judged.impossible += 1;
    } else if (choice.fraction > 0) {
      const double p = choice.probability();
      groups.add(i, choice, up);
      residuals.value[i] = static_cast<float>((up ? 1 : 0) - p);
      residuals.bound[i] = static_cast<float>(std::max(p, 1 - p));
      residuals.variance[i] = static_cast<float>(p * (1 - p));
    }
  }
  judged.share = groups.worst();
  judged.correlated = correlation(residuals, length);
  return judged;
}

/// To nearest even.
unsigned nearest(std::size_t, const Choice& choice) {
  constexpr double kHalf = 0.5;
  const bool up = choice.fraction > kHalf || (choice.fraction == kHalf && choice.lower % 2 != 0);
  return choice.lower + (up ? 1 : 0);
}

}  // namespace

std::vector<op::Finding> stochastic_findings(const op::FindingRequest& request) {
  std::vector<op::Finding> all;
  for_each_layout(request, [&](const op::Delivered& codes, const Nvfp4Layout& source, const Nvfp4Scaled& scaled) {
    const Judged judged =
        judge(source, scaled.values.span(), [&](std::size_t i, const Choice&) { return code_at(codes.value, i); });
    const Judged rounded = judge(source, scaled.values.span(), &nearest);
    const bool would_pass = rounded.share.measured <= 1 && rounded.correlated.measured <= 1;
    const std::string port(codes.port);
    all.push_back({std::string(kImpossible),
                   port,
                   judged.impossible,
                   0,
                   "elements whose code is of neither number next to x factor",
                   {},
                   {}});
    all.push_back({std::string(kShare),
                   port,
                   judged.share.measured,
                   1,
                   judged.share.text,
                   {},
                   would_pass ? "rounded_to_nearest" : ""});
    all.push_back({std::string(kCorrelated), port, judged.correlated.measured, 1, judged.correlated.text, {}, {}});
  });
  return all;
}

std::vector<op::ImpossibleDraw> impossible_codes(const op::FindingRequest& request) {
  std::vector<op::ImpossibleDraw> all;
  for_each_layout(request, [&](const op::Delivered& codes, const Nvfp4Layout& source, const Nvfp4Scaled& scaled) {
    for (std::size_t byte = 0; byte < codes.value.size(); ++byte) {
      unsigned possible = 0;
      bool is_possible = true;
      for (std::size_t half = 0; half < 2; ++half) {
        const Choice choice = choice_of(scaled.values[2 * byte + half]);
        const unsigned stored = code_at(codes.value, 2 * byte + half);
        is_possible = is_possible && (stored == choice.lower || (choice.fraction > 0 && stored == choice.lower + 1));
        possible |= choice.lower << half * kCodeBits;
      }
      if (!is_possible && !source.is_uncertain(2 * byte)) {
        all.push_back({codes.port, byte, static_cast<double>(possible)});
      }
    }
  });
  return all;
}

std::span<const op::OwnGate> stochastic_gates() {
  static constexpr std::array kGates = {
      op::OwnGate{kImpossible,
                  "stochastic rounding: elements whose code is of neither of the two numbers next to x factor"},
      op::OwnGate{
          kShare,
          "stochastic rounding: how often elements are rounded away from zero, and those of a line, a column or "
          "a tile to the nearer number, against floor(256 f) / 256"},
      op::OwnGate{kCorrelated, "stochastic rounding: correlation of draws a fixed distance apart"},
  };
  return kGates;
}

}  // namespace numcheck::reference
