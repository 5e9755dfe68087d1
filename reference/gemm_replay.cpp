#include "reference/gemm_replay.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/parallel.hpp"
#include "op/reference.hpp"
#include "reference/gemm_replay_count.hpp"
#include "reference/gemm_replay_element.hpp"
#include "reference/gemm_slices.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kMostElements = 4096, kFewestElements = 256, kMostLookedAt = std::int64_t{1} << 22;
constexpr std::int64_t kMostProducts = std::int64_t{1} << 24;  // of all elements together
constexpr std::size_t kScreened = 192, kKept = 4, kPerTask = 32;

/// How k is cut, and what is done with the slices.
struct Way {
  const Partition* partition = nullptr;
  Scheme scheme;
};

/// Sums of the products of one element up to each of them.
class RunningSums {
 public:
  RunningSums(const op::ReplayRequest& request, const GemmOperands& g)
      : request_(request), g_(g), sums_(static_cast<std::size_t>(g.shape.k) + 1) {}

  void load(std::int64_t index) {
    const std::int64_t n = g_.shape.n, m = g_.shape.m, k = g_.shape.k;
    const std::int64_t batch = index / (m * n), row = index / n % m, column = index % n;
    const double* a = g_.a.data + batch * m * k + (g_.a.transposed ? row : row * k);
    const double* b = g_.b.data + batch * k * n + (g_.b.transposed ? column * k : column);
    const std::int64_t a_step = g_.a.transposed ? m : 1, b_step = g_.b.transposed ? 1 : n;
    Sums sums;
    a_hash_ = b_hash_ = 0;
    for (std::int64_t t = 0; t < k; ++t) {
      a_hash_ = mixed(a_hash_, a[t * a_step]);
      b_hash_ = mixed(b_hash_, b[t * b_step]);
      const double product = a[t * a_step] * b[t * b_step];
      sums.value += product;
      sums.magnitude += std::abs(product);
      sums.second += product * product;
      sums_[static_cast<std::size_t>(t) + 1] = sums;
    }
  }

  /// Of the row of op(A) and of the column of op(B).
  [[nodiscard]] std::array<std::uint64_t, 2> hashes() const { return {a_hash_, b_hash_}; }

  [[nodiscard]] Sum of(const Slice& slice) const {
    Sums sums;
    for (const Range& range : slice) {
      const Sums& high = sums_[static_cast<std::size_t>(range.end)];
      const Sums& low = sums_[static_cast<std::size_t>(range.begin)];
      sums.value += high.value - low.value;
      sums.magnitude += high.magnitude - low.magnitude;
      sums.second += high.second - low.second;
    }
    const double scale = std::abs(g_.product_scale);
    const double variance =
        scale > 0
            ? request_.variance(scale * sums.magnitude, scale * scale * sums.second, scale * sums.value) / scale / scale
            : 0;
    return {sums.value, variance};
  }

 private:
  struct Sums {
    double value = 0, magnitude = 0, second = 0;
  };
  static std::uint64_t mixed(std::uint64_t hash, double value) {
    constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
    hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * kOdd;
    return hash ^ hash >> 32;
  }

  const op::ReplayRequest& request_;
  const GemmOperands& g_;
  std::vector<Sums> sums_;
  std::uint64_t a_hash_ = 0, b_hash_ = 0;
};

class Replays {
 public:
  explicit Replays(const op::ReplayRequest& request)
      : request_(request),
        g_(gemm_operands({request.params, {request.inputs.begin(), request.inputs.end()}, {}})),
        rounding_(request.rounding) {
    if (g_.shape.k == 0) {
      rounding_.slices = 1;
    }
    partitions_ = rounding_.slices > 1 ? plausible_partitions(g_.shape.k, rounding_.slices)
                                       : std::vector<Partition>{{{{Range{0, g_.shape.k}}}, ""}};
    const std::vector<Scheme> schemes = schemes_of(rounding_, g_);
    for (const Partition& partition : partitions_) {
      for (const Scheme& scheme : schemes) {
        ways_.push_back({&partition, scheme});
      }
    }
    choose_elements();
  }

  [[nodiscard]] op::Replay best() const {
    if (elements_.empty()) {
      return {.text = "no element is finite"};
    }
    const std::vector<Count> screened = total(count(ways_, screening()));
    const std::vector<Way> ways = best_of(screened);
    const std::vector<std::vector<Count>> counts = count(ways, elements_);
    const std::vector<Count> totals = total(counts);
    const auto best = static_cast<std::size_t>(std::ranges::max_element(totals, {}, &Count::lead) - totals.begin());
    GroupCounts groups(g_.shape);
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      groups.add(elements_[i], counts[i][best]);
    }
    const Count& found = totals[best];
    const std::string against = rounding_.rounds() ? against_farthest(ways[best], found) : "";
    const std::string contradiction = against.empty() ? uneven_text(groups) : against;
    const bool shown = shows(found, request_.rounding, distinct(screened)) && contradiction.empty();
    return {.shown = shown,
            .too_few = !shown && contradiction.empty() && too_few(found, request_.rounding, distinct(screened)),
            .share = found.elements > 0 ? 1 - found.other / found.elements : 0,
            .elements = static_cast<std::uint64_t>(std::llround(found.elements)),
            .equal = static_cast<std::uint64_t>(std::llround(found.elements - found.other)),
            .slices = static_cast<int>(ways[best].partition->slices.size()),
            .text = text_of(found, ways[best]) + contradiction};
  }

 private:
  /// Some that are spread over D. An odd step meets all columns of most outputs. Only finite ones say anything: where few are, those
  /// that the steps have missed as well.
  void choose_elements() {
    const std::int64_t outputs = g_.outputs();
    const std::int64_t most =
        std::clamp(kMostProducts / std::max<std::int64_t>(1, g_.shape.k), kFewestElements, kMostElements);
    const std::int64_t step = outputs <= most ? 1 : (outputs / most) | 1;
    const auto add = [&](std::int64_t index) {
      if (std::isfinite(stored(index))) {
        elements_.push_back(index);
      }
    };
    for (std::int64_t index = 0; index < outputs; index += step) {
      add(index);
    }
    const auto is_enough = [&] { return static_cast<std::int64_t>(elements_.size()) >= kFewestElements; };
    for (std::int64_t index = 0; index < std::min(outputs, kMostLookedAt) && !is_enough(); ++index) {
      if (index % step != 0) {
        add(index);
      }
    }
    std::ranges::sort(elements_);
  }

  /// Relu may have made a number of NaN or of an infinity, which says nothing of how k is cut.
  [[nodiscard]] bool is_known(const RunningSums& sums, const ElementParts& parts) const {
    return std::isfinite(sums.of({Range{0, g_.shape.k}}).value + parts.addend.value + parts.bias.value);
  }

  /// So many of the elements, if there are more, from all over them.
  static std::vector<std::int64_t> spread(const std::vector<std::int64_t>& elements, std::size_t most) {
    const std::size_t number = std::min(most, elements.size());
    std::vector<std::int64_t> some(number);
    for (std::size_t i = 0; i < number; ++i) {
      some[i] = elements[i * elements.size() / number];
    }
    return some;
  }

  /// Some of those with other bits than one rounding at the end gives, which tell ways apart, and as many of all; none that is like
  /// another.
  [[nodiscard]] std::vector<std::int64_t> screening() const {
    std::vector<char> tells(elements_.size());
    std::vector<Fingerprint> fingerprints(elements_.size());
    const ElementReplay replay(request_, g_);
    core::parallel_chunks(elements_.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
      RunningSums sums(request_, g_);
      for (std::size_t i = begin; i < end; ++i) {
        sums.load(elements_[i]);
        ElementParts parts = addends_of(elements_[i]);
        fingerprints[i] = fingerprint(sums, parts, elements_[i]);
        parts.slices = {sums.of({Range{0, g_.shape.k}})};
        const Prediction once = replay.strict(parts);
        const double got = stored(elements_[i]);
        tells[i] = is_known(sums, parts) && (got < once.low || got > once.high) ? 1 : 0;
      }
    });
    std::vector<std::int64_t> telling, distinct;
    std::set<Fingerprint> seen;
    for (std::size_t i = 0; i < tells.size(); ++i) {
      if (seen.insert(fingerprints[i]).second) {
        distinct.push_back(elements_[i]);
        if (tells[i] != 0) {
          telling.push_back(elements_[i]);
        }
      }
    }
    std::vector<std::int64_t> chosen = spread(telling, kScreened / 2);
    const std::vector<std::int64_t> of_all = spread(distinct, kScreened - chosen.size());
    chosen.insert(chosen.end(), of_all.begin(), of_all.end());
    return chosen;
  }

  /// The ways that most elements speak for.
  [[nodiscard]] std::vector<Way> best_of(const std::vector<Count>& screened) const {
    std::vector<std::size_t> order(ways_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return screened[i].lead(); });
    order.resize(std::min(order.size(), kKept));
    std::vector<Way> best;
    std::ranges::transform(order, std::back_inserter(best), [this](std::size_t i) { return ways_[i]; });
    return best;
  }

  [[nodiscard]] static std::string uneven_text(const GroupCounts& groups) {
    const std::string uneven = groups.uneven();
    return uneven.empty() ? uneven : ", and too many of them are of " + uneven;
  }

  /// Which element is further off than the roundings make any; empty if none is. Looks at the farthest as well, which say nothing
  /// of how many have other bits, unless no element can tell the roundings from one at the end: then they explain none of them.
  [[nodiscard]] std::string against_farthest(const Way& way, const Count& counted) const {
    const std::vector<Count> totals = total(count({way}, request_.farthest));
    const Count farthest = totals.empty() ? Count{} : totals.front();
    if (counted.telling == 0 && farthest.telling == 0 && beyond_chance(farthest)) {
      return fmt::format(", and of the {:.0f} that are farthest off {:.0f} have other bits", farthest.elements,
                         farthest.other);
    }
    return astray(way);
  }

  /// Which element no rounding of that way explains.
  [[nodiscard]] std::string astray(const Way& way) const {
    std::vector<std::int64_t> all = elements_;
    all.insert(all.end(), request_.farthest.begin(), request_.farthest.end());
    const std::vector<std::vector<Count>> counts = count({way}, all);
    const auto found = std::ranges::find_if(counts, [](const std::vector<Count>& of) { return of.front().astray > 0; });
    if (found == counts.end()) {
      return "";
    }
    const std::int64_t index = all[static_cast<std::size_t>(found - counts.begin())];
    return fmt::format(", and one at least, [{}, {}], is further off than they make any", index / g_.shape.n,
                       index % g_.shape.n);
  }

  /// Of every element, of every way. Where rows or columns are equal, so are elements and their roundings: they count once.
  [[nodiscard]] std::vector<std::vector<Count>> count(const std::vector<Way>& ways,
                                                      const std::vector<std::int64_t>& elements) const {
    const ElementReplay replay(request_, g_);
    std::vector<std::vector<Count>> counts(elements.size());
    std::vector<Fingerprint> fingerprints(elements.size());
    core::parallel_chunks(elements.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
      RunningSums sums(request_, g_);
      for (std::size_t i = begin; i < end; ++i) {
        sums.load(elements[i]);
        const ElementParts parts = addends_of(elements[i]);
        fingerprints[i] = fingerprint(sums, parts, elements[i]);
        counts[i] = is_known(sums, parts) ? count_element(replay, sums, parts, stored(elements[i]), elements[i], ways)
                                          : std::vector<Count>(ways.size());
      }
    });
    std::set<Fingerprint> seen;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const bool counts_once = std::ranges::any_of(counts[i], [](const Count& of_way) { return of_way.stored > 0; });
      if (counts_once && !seen.insert(fingerprints[i]).second) {
        counts[i].assign(ways.size(), Count{.stored = 1});
      }
    }
    return counts;
  }

  /// What only equal elements share: their row and column, addends, and what was stored.
  using Fingerprint = std::array<std::uint64_t, 5>;

  [[nodiscard]] Fingerprint fingerprint(const RunningSums& sums, const ElementParts& parts, std::int64_t index) const {
    const std::array<std::uint64_t, 2> hashes = sums.hashes();
    const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
    return {hashes[0], hashes[1], bits(parts.addend.value), bits(parts.bias.value), bits(stored(index))};
  }

  [[nodiscard]] double stored(std::int64_t index) const { return request_.stored(static_cast<std::size_t>(index)); }

  /// All parts but the slices.
  [[nodiscard]] ElementParts addends_of(std::int64_t index) const {
    ElementParts parts;
    parts.addend = g_.c == nullptr ? Sum{} : in_fp32(g_.c_scale, g_.c[index]);
    parts.bias = g_.bias == nullptr ? Sum{} : in_fp32(g_.bias_scale, g_.bias[index % g_.shape.n]);
    return parts;
  }

  [[nodiscard]] static std::vector<Count> total(const std::vector<std::vector<Count>>& counts) {
    std::vector<Count> sums(counts.empty() ? 0 : counts.front().size());
    for (const std::vector<Count>& of_element : counts) {
      for (std::size_t w = 0; w < sums.size(); ++w) {
        sums[w].add(of_element[w]);
      }
    }
    return sums;
  }

  [[nodiscard]] static std::vector<Count> count_element(const ElementReplay& replay, const RunningSums& sums,
                                                        ElementParts parts, double got, std::int64_t index,
                                                        const std::vector<Way>& ways) {
    std::vector<Count> counts;
    const Partition* loaded = nullptr;
    for (const Way& way : ways) {
      if (way.partition != loaded) {
        loaded = way.partition;
        parts.slices.clear();
        std::ranges::transform(loaded->slices, std::back_inserter(parts.slices),
                               [&](const Slice& slice) { return sums.of(slice); });
      }
      counts.push_back(count_of(index, got, replay.strict(parts), replay.predict(parts, way.scheme)));
    }
    return counts;
  }

  [[nodiscard]] std::string text_of(const Count& found, const Way& way) const {
    std::string how = rounding_.slices > 1 ? fmt::format("slices {}", way.partition->text) : "";
    if (const std::string scheme = way.scheme.text(); !scheme.empty()) {
      how += (how.empty() ? "" : ", ") + scheme;
    }
    const std::string ways =
        ways_.size() > 1 ? fmt::format(" (the best of {} ways{})", ways_.size(), how.empty() ? "" : ": " + how) : "";
    const std::string telling =
        rounding_.rounds() ? fmt::format("; {:.0f} of the {:.0f} that rounding once would give other bits have them",
                                         found.told, found.telling)
                           : "";
    return fmt::format(
        "computed again with these roundings{}, {:.0f} of {:.0f} elements have other bits, where {:.3g} are expected{}",
        ways, found.other, found.elements, found.expected, telling);
  }

  const op::ReplayRequest& request_;
  GemmOperands g_;
  op::EarlyRounding rounding_;
  std::vector<Partition> partitions_;
  std::vector<Way> ways_;
  std::vector<std::int64_t> elements_;
};

}  // namespace

op::Replay gemm_replay(const op::ReplayRequest& request) {
  return Replays(request).best();
}

}  // namespace numcheck::reference
