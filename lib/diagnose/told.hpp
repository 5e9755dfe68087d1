// What an output, and the op itself, say of a failure without any trial.
#pragma once

#include <span>
#include <string_view>

#include "diagnose/search.hpp"

namespace numcheck::diagnose {

/// Names of these causes.
struct ToldCause {
  std::string_view name, doc;
};
[[nodiscard]] std::span<const ToldCause> told_causes();

/// The pattern that outputs are filled with before a run.
void add_unwritten(const Subject& subject, const verdict::OutputResult& output, Diagnosis& diagnosis);

/// What a run did besides its outputs. False if nothing is wrong with that.
[[nodiscard]] bool add_conduct(const Subject& subject, Diagnosis& diagnosis);

/// A maximum that is not that of the output which it is of.
void add_amax(const Subject& subject, const verdict::OutputResult& output, Diagnosis& diagnosis);

/// The block of rows, or the head, whose slope is wrong, where nothing else is.
void add_block(const verdict::OutputResult& output, Diagnosis& diagnosis);

/// The op's own diagnoses, which name a cause and measure what it explains, of at least that share. `only_roundings`: those of
/// partial results, and why elements are NaN or infinite.
void add_findings(const verdict::OutputResult& output, double least, bool only_roundings, Diagnosis& diagnosis);

}  // namespace numcheck::diagnose
