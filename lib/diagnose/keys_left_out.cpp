// Hypotheses about keys at the end that attention leaves out: those of an incomplete tile, the last tile, or padding.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagnose/hypothesis.hpp"
#include "op/attention_fp8.hpp"
#include "op/attention_layout.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {
namespace {

/// How many keys may be missing: one, what is left of a tile, and the last tile.
std::set<std::int64_t> counts(std::int64_t keys) {
  std::set<std::int64_t> all = {1};
  for (const std::int64_t tile : {8, 16, 32, 64, 128, 256}) {
    all.insert(keys % tile);
    all.insert(tile);
  }
  std::erase_if(all, [keys](std::int64_t n) { return n == 0 || n >= keys; });
  return all;
}

prepare::SharedDoubles alike(std::int64_t count, std::int64_t value) {
  auto all = std::make_shared<core::Buffer<double>>(static_cast<std::size_t>(count));
  for (double& x : all->span()) {
    x = static_cast<double>(value);
  }
  return all;
}

/// As if all sequences had fewer keys.
std::vector<Hypothesis> keys_left_out(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  std::vector<Hypothesis> all;
  if (!c.op->name.starts_with("attention_") || !op::field_index(*c.op, "mask").has_value() ||
      evidence.values.unpredictable) {  // of a mask that is drawn, what is wrong may then lie where nobody looks
    return all;
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  if ((p.mask != "none" && p.mask != "causal") || p.layout == "thd") {
    return all;
  }
  for (const std::int64_t count : counts(p.sk)) {
    Trial trial = as_declared(evidence.subject);
    trial.c.params[*op::field_index(*c.op, "mask")] = std::string(p.mask == "none" ? "padding" : "padding_causal");
    if (!c.op->check(trial.c.params, *c.mode).empty()) {
      continue;
    }
    trial.inputs.set("q_lengths", alike(p.batches, p.sq));
    trial.inputs.set("kv_lengths", alike(p.batches, p.sk - count));
    all.push_back({fmt::format("last_keys_left_out={}", count), "last_keys_left_out",
                   count == 1 ? "the last key is left out" : fmt::format("the last {} keys are left out", count),
                   "Look at the last tile of keys: whether it is computed at all where the number of keys is not a "
                   "multiple of the tile's, and at how its keys are masked.",
                   std::move(trial)});
    all.back().shared_cause = "the last keys are left out";
  }
  return all;
}

/// What a head's queries give with the first keys alone, one key after another.
class FirstKeys {
 public:
  FirstKeys(const Evidence& evidence, const op::AttentionParams& p, std::int64_t sequence)
      : evidence_(evidence),
        p_(p),
        q_(numbers("q")),
        k_(numbers("k")),
        v_(numbers("v")),
        query_(op::head_place(p, op::Side::queries, sequence, 0, p.d)),
        output_(op::head_place(p, op::Side::queries, sequence, 0, p.value_channels())),
        key_(op::head_place(p, op::Side::keys, sequence, 0, p.d)),
        value_(op::head_place(p, op::Side::keys, sequence, 0, p.value_channels())) {}

  /// How many keys give what is nearest to the delivered output of the last queries.
  [[nodiscard]] std::int64_t nearest_count() const {
    constexpr std::int64_t kQueries = 4;
    std::vector<double> squares(static_cast<std::size_t>(p_.sk), 0.0);
    for (std::int64_t i = std::max<std::int64_t>(0, p_.sq - kQueries); i < p_.sq; ++i) {
      add_query(i, squares);
    }
    return std::ranges::min_element(squares) - squares.begin() + 1;
  }

 private:
  [[nodiscard]] std::span<const double> numbers(std::string_view name) const {
    const std::vector<op::Port> ports =
        evidence_.subject.c.op->ports(evidence_.subject.c.params, *evidence_.subject.c.mode);
    return evidence_.subject.inputs.of(op::port_named(ports, name))->span();
  }
  [[nodiscard]] static std::span<const double> row(std::span<const double> tensor, const op::HeadPlace& place,
                                                   std::int64_t position, std::int64_t channels) {
    return tensor.subspan(static_cast<std::size_t>(place.first + position * place.stride),
                          static_cast<std::size_t>(channels));
  }

  /// Adds the squared distances of query i to those of each number of keys.
  void add_query(std::int64_t i, std::span<double> squares) const {
    const std::span<const double> q = row(q_, query_, i, p_.d);
    const std::span<const double> delivered = row(evidence_.delivered, output_, i, p_.value_channels());
    const op::KeyRange seen = p_.visible(i, p_.sq, p_.sk);
    std::vector<double> sums(delivered.size(), 0.0);
    double largest = -std::numeric_limits<double>::infinity(), total = 0;
    for (std::int64_t j = 0; j < p_.sk; ++j) {
      if (j >= seen.begin && j < seen.end) {
        const std::span<const double> k = row(k_, key_, j, p_.d), v = row(v_, value_, j, p_.value_channels());
        const double score = p_.factor() * std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
        const double before = std::exp(largest - std::max(largest, score));
        largest = std::max(largest, score);
        const double weight = std::exp(score - largest);
        total = total * before + weight;
        for (std::size_t c = 0; c < sums.size(); ++c) {
          sums[c] = sums[c] * before + weight * v[c];
        }
      }
      for (std::size_t c = 0; c < sums.size(); ++c) {
        const double off = (total == 0 ? 0 : sums[c] / total) - delivered[c];
        squares[static_cast<std::size_t>(j)] += off * off;
      }
    }
  }

  const Evidence& evidence_;
  const op::AttentionParams& p_;
  std::span<const double> q_, k_, v_;
  op::HeadPlace query_, output_, key_, value_;
};

/// Lengths of sequences that nobody has told.
std::vector<Hypothesis> keys_of_sequences(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  if (c.op->name != "attention_fwd" || evidence.port != "o" || op::has_scales(*c.mode) || !evidence.sample.all()) {
    return {};
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  const bool is_plain = p.bias == "none" && p.softmax == "vanilla" && p.softcap == 0 && !p.has_dropout() &&
                        p.packing == "none" && p.layout != "thd";
  if ((p.mask != "none" && p.mask != "causal") || !is_plain) {
    return {};
  }
  std::vector<std::int64_t> keys;
  auto lengths = std::make_shared<core::Buffer<double>>(static_cast<std::size_t>(p.batches));
  for (std::int64_t sequence = 0; sequence < p.batches; ++sequence) {
    keys.push_back(FirstKeys(evidence, p, sequence).nearest_count());
    (*lengths)[static_cast<std::size_t>(sequence)] = static_cast<double>(keys.back());
  }
  Trial trial = as_declared(evidence.subject);
  trial.c.params[*op::field_index(*c.op, "mask")] = std::string(p.mask == "none" ? "padding" : "padding_causal");
  if (std::ranges::all_of(keys, [&](std::int64_t n) { return n == p.sk; }) ||
      !c.op->check(trial.c.params, *c.mode).empty()) {
    return {};
  }
  trial.inputs.set("q_lengths", alike(p.batches, p.sq));
  trial.inputs.set("kv_lengths", std::move(lengths));
  constexpr std::size_t kShown = 8;
  const std::string shown =
      fmt::format("{}{}", fmt::join(keys | std::views::take(kShown), ", "), keys.size() > kShown ? ", ..." : "");
  return {{.name = "keys_of_sequences",
           .family = {},
           .cause = fmt::format("only the first keys of each sequence were seen: {} of {}", shown, p.sk),
           .remedy = "A padding mask that one side has and the other lacks: give the lengths as tensor kv_lengths with "
                     "--param mask=padding, or leave no keys out.",
           .trial = std::move(trial),
           .shared_cause = "only the first keys of each sequence were seen"}};
}

constexpr std::array kRows = {
    CatalogueRow{"last_keys_left_out=N", "attention without the keys of the last tile, or of what is left of one",
                 &keys_left_out, Stage::first, true},
    CatalogueRow{"keys_of_sequences", "attention to fewer keys than there are, each sequence to as many as fit",
                 &keys_of_sequences, Stage::first, true}};

}  // namespace

std::span<const CatalogueRow> keys_left_out_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
