// Hypotheses about keys at the end that attention leaves out: those of an incomplete tile, or the last tile.
#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "diagnose/hypothesis.hpp"
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
  if (!c.op->name.starts_with("attention_") || !op::field_index(*c.op, "mask").has_value()) {
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

constexpr std::array kRows = {CatalogueRow{"last_keys_left_out=N",
                                           "attention without the keys of the last tile, or of what is left of one",
                                           &keys_left_out, Stage::first, true}};

}  // namespace

std::span<const CatalogueRow> keys_left_out_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
