// What files of run --keep-tensors say of the case and the run that left them. Other files say nothing.
#pragma once

#include <optional>
#include <string>

#include "data/tensor_file.hpp"
#include "diagnose/subject.hpp"
#include "plan/case.hpp"

namespace numcheck::app {

/// Throws core::UsageError if the file says it in words that run does not write, as ran_of does.
[[nodiscard]] std::optional<plan::Case> case_of(const data::TensorFile& file);

[[nodiscard]] std::optional<diagnose::Ran> ran_of(const data::TensorFile& file);

/// Which gate the run failed at; empty if it did not fail, or the file does not say.
[[nodiscard]] std::string failing_of(const data::TensorFile& file);

/// Whether the inputs are what an exact leg draws: others are summed with roundings, whatever the file says.
[[nodiscard]] bool has_small_integers(const data::TensorFile& file, const plan::Case& c);

}  // namespace numcheck::app
