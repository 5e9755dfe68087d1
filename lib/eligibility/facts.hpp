// What gates depend on: typed facts about a case of attention, the device and the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "op/attention_params.hpp"

namespace numcheck::eligibility {

enum class NumberFact : std::uint8_t {
  sm,     ///< 10 * major + minor
  cudnn,  ///< as cudnnGetVersion: 91002 for 9.10.2, 8907 for 8.9.7; may be unknown
  d,
  dv,
  wider,     ///< max(d, dv)
  narrower,  ///< min(d, dv)
  sq,
  sk,
  window_left,   ///< -1: no limit
  window_right,  ///< -1: no limit
  align,   ///< layout thd: sequences begin at multiples of this many tokens; above 1 there is padding between them
  scores,  ///< batches * heads * sq * sk
};
inline constexpr std::array<std::string_view, 12> kNumberFacts = {
    "sm", "cudnn", "d", "dv", "wider", "narrower", "sq", "sk", "window_left", "window_right", "align", "scores"};

enum class WordFact : std::uint8_t { storage, mask, bias, softmax, layout, packing, dropout_mask };
inline constexpr std::array<std::string_view, 7> kWordFacts = {"storage", "mask",    "bias",        "softmax",
                                                               "layout",  "packing", "dropout_mask"};

enum class FlagFact : std::uint8_t {
  training,           ///< a forward pass that keeps what the backward pass needs, or a backward pass
  backward,           ///< a backward pass
  deterministic,      ///< the backward pass must give the same bits in every run
  causal,             ///< the mask is one of the causal masks
  bottom_right,       ///< the mask is causal and starts in the bottom right corner
  padding,            ///< sequences have lengths of their own
  more_queries,       ///< sq > sk
  different_lengths,  ///< sq != sk
  different_heads,    ///< d != dv
  shared_keys,        ///< several heads of queries share one of keys
  softcap,            ///< scores are capped
  dropout,            ///< weights are dropped
  max_logit,          ///< the largest score of each query is an output
};
inline constexpr std::array<std::string_view, 13> kFlagFacts = {
    "training",          "backward",        "deterministic", "causal",  "bottom_right", "padding",  "more_queries",
    "different_lengths", "different_heads", "shared_keys",   "softcap", "dropout",      "max_logit"};

/// How a case is run, and where.
struct Circumstances {
  core::Dtype storage = core::Dtype::bf16;
  bool training = false;
  bool backward = false;
  bool deterministic = false;
  int sm = 0;
  std::optional<std::int64_t> cudnn;  ///< nothing: unknown
};

/// All facts, by enumerator.
struct Facts {
  Facts(const op::AttentionParams& p, const Circumstances& circumstances);

  [[nodiscard]] std::optional<std::int64_t> number(NumberFact fact) const {
    return numbers.at(static_cast<std::size_t>(fact));
  }
  [[nodiscard]] std::string_view word(WordFact fact) const { return words.at(static_cast<std::size_t>(fact)); }
  [[nodiscard]] bool flag(FlagFact fact) const { return flags.at(static_cast<std::size_t>(fact)); }

  std::array<std::optional<std::int64_t>, kNumberFacts.size()> numbers;
  std::array<std::string_view, kWordFacts.size()> words;  ///< of the parameters, which must outlive them
  std::array<bool, kFlagFacts.size()> flags{};
};

/// The values that a word can have, for the decoder.
[[nodiscard]] std::vector<std::string_view> legal_words(WordFact fact);

}  // namespace numcheck::eligibility
