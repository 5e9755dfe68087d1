#include "reference/attention_channel_errors.hpp"

#include <algorithm>

namespace numcheck::reference {

ChannelErrors::ChannelErrors(std::int64_t rows, std::int64_t channels) : channels_(static_cast<std::size_t>(channels)) {
  for (std::vector<double>& sums : sums_) {
    sums.resize(static_cast<std::size_t>(rows * channels));
  }
}

void ChannelErrors::begin(const Positions& queries, const Positions& keys) {
  queries_ = queries;
  keys_ = keys;
  for (std::vector<double>& terms : terms_) {
    terms.assign(static_cast<std::size_t>(queries.size() * keys.size()), 0);
  }
}

void ChannelErrors::take(const PairRow& pairs, const GradientFacts& facts) {
  const std::int64_t first = (pairs.query - queries_.begin) * keys_.size() + pairs.keys.begin - keys_.begin;
  for (std::size_t term = 0; term < kErrorTerms.size(); ++term) {
    std::ranges::copy(facts.plain(kErrorTerms.at(term)), terms_.at(term).begin() + first);
  }
}

void ChannelErrors::take_elements(const PairRow& pairs, const GradientFacts& facts, std::size_t row) {
  const std::size_t first = row * channels_ + static_cast<std::size_t>(pairs.keys.begin);
  for (std::size_t term = 0; term < kErrorTerms.size(); ++term) {
    const std::span<const double> from = facts.plain(kErrorTerms.at(term));
    for (std::size_t n = 0; n < from.size(); ++n) {
      sums_.at(term)[first + n] += from[n];
    }
  }
}

void ChannelErrors::end(GradientTile& tile, bool to_keys, const SummedRows& rows, std::int64_t channels) {
  for (std::size_t term = 0; term < kErrorTerms.size(); ++term) {
    tile.add_terms(terms_.at(term), to_keys, rows, channels, sums_.at(term));
  }
}

double ChannelErrors::weight_ratio(const GradientFacts& facts, std::size_t row, std::size_t channel) const {
  return largest(0, facts, row, channel);
}

double ChannelErrors::spread_ratio(const GradientFacts& facts, std::size_t row, std::size_t channel) const {
  return largest(kOfSpread, facts, row, channel);
}

double ChannelErrors::length_ratio(const GradientFacts& facts, std::size_t row, std::size_t channel) const {
  const double length = facts.sum(kLength, row);
  return length == 0 ? 0 : sums_.at(kOfLength)[row * channels_ + channel] / length * static_cast<double>(channels_);
}

double ChannelErrors::largest(std::size_t first, const GradientFacts& facts, std::size_t row,
                              std::size_t channel) const {
  const std::size_t at = row * channels_ + channel;
  const double all = sums_.at(first)[at], of_row = facts.sum(kErrorTerms.at(first), row);
  double ratio = 0;
  for (std::size_t part = first + 1; part <= first + kParts; ++part) {
    const double mean = facts.sum(kErrorTerms.at(part), row);
    ratio = mean > 0 && all > 0 ? std::max(ratio, sums_.at(part)[at] / all / (mean / of_row)) : ratio;
  }
  return ratio;
}

}  // namespace numcheck::reference
