#include "diagnose/attention_notes.hpp"

#include <cstdint>
#include <numeric>
#include <string_view>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace numcheck::diagnose {

std::string layout_note(const std::vector<AttentionReading>& readings, const ChosenReading& chosen) {
  const AttentionReading& reading = readings[chosen.index];
  std::string text = fmt::format("layout = {}: {} heads of {} x {} ({} of keys) in {} sequences", reading.layout,
                                 reading.p.heads, reading.p.sq, reading.p.d, reading.p.key_heads(), reading.p.batches);
  std::vector<std::string_view> others;
  for (const AttentionReading& other : readings) {
    if (&other != &reading) {
      others.push_back(other.layout);
    }
  }
  if (others.empty()) {
    return text;
  }
  const std::string as_well = fmt::format("; the shapes fit {} as well, and the numbers ", fmt::join(others, " and "));
  switch (chosen.certainty) {
    case ChosenReading::Certainty::proven:
      return text + as_well + "fit only this";
    case ChosenReading::Certainty::likely:
      return text + as_well + fmt::format("are nearest to this: --param layout={} reads the other", others.front());
    case ChosenReading::Certainty::none:
      break;
  }
  return text + as_well + fmt::format("do not tell: --param layout={} reads the other", others.front());
}

std::string left_tokens_note(const AttentionReading& reading) {
  std::vector<std::string> left;
  for (const auto& [port, tokens, count] : {std::tuple("q", reading.queries_left, reading.q_lengths),
                                            std::tuple("k", reading.keys_left, reading.kv_lengths)}) {
    if (tokens > 0) {
      const std::int64_t all = std::reduce(count.begin(), count.end(), tokens);
      left.push_back(fmt::format("{} of the {} tokens of {}", tokens, all, port));
    }
  }
  return left.empty() ? std::string()
                      : fmt::format("{} come after the last sequence: they are not judged", fmt::join(left, " and "));
}

}  // namespace numcheck::diagnose
