// How well one hypothesis explains an output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "diagnose/hypothesis.hpp"
#include "diagnose/search.hpp"

namespace numcheck::diagnose {

/// What it is measured against: the output as declared.
struct Declared {
  std::string_view port;
  double rms_error = 0;
  std::uint64_t unjudged = 0;       ///< elements that any number may be in
  std::uint64_t most_unjudged = 0;  ///< elements; what overflows everywhere would pass for anything
  bool is_exact = false;            ///< moved, cast or drawn: bits decide
  std::uint64_t equal_bits = 0;     ///< elements that are RN of what is expected
  bool has_numbers = true;          ///< there is an error to explain, and not only NaN or infinities in wrong places
  const verdict::RunResult* run = nullptr;  ///< all outputs, as declared
  const Explanation* simulated = nullptr;   ///< what the simulated device without a fault explains; may be null
  bool is_drawn = false;                    ///< the output is unpredictable
};

/// What is known of a hypothesis before anything is computed.
[[nodiscard]] Explanation unjudged_explanation(const Hypothesis& hypothesis);

/// Whether so many more elements have their bits than before that it is not by chance: half of those that lacked them, or five
/// standard deviations of such a count.
[[nodiscard]] bool gains_bits(std::uint64_t equal, std::uint64_t before, std::uint64_t of);

/// Judges the outputs as those of the hypothesis. A trial that cannot be computed is one hypothesis less, and says why.
[[nodiscard]] Explanation explain(const Subject& subject, const Hypothesis& hypothesis, const Declared& declared,
                                  double flops);

/// The family, or the name of one that has none.
[[nodiscard]] const std::string& family_of(const Hypothesis& hypothesis);

/// Whether nothing explains the output yet. What only allows for its errors may be beside a cause that predicts them, and what
/// contradicts another output beside one that does not.
[[nodiscard]] bool is_open(const Diagnosis& diagnosis);

/// Of two explanations by one cause: whether the first one alone predicts the errors and contradicts nothing, has more bits, or leaves
/// less.
[[nodiscard]] bool is_better_proof(const Explanation& one, const Explanation& other);

/// Orders what passes, and excludes what a better explanation excludes: by predicting the errors, and of 16- and 8-bit outputs by
/// many more of their bits.
void keep_best(bool is_narrow, Diagnosis& diagnosis);

/// An output of a run; null if it has none of that name.
[[nodiscard]] const verdict::OutputResult* output_named(const verdict::RunResult& run, std::string_view port);

/// The error that is judged.
[[nodiscard]] const metric::ErrorNorms& error_of(const verdict::OutputResult& output);

/// Elements that any number may be in.
[[nodiscard]] std::uint64_t unjudged(const verdict::OutputResult& output);

}  // namespace numcheck::diagnose
