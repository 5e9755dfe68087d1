// A diagnosis for people, on one screen.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/apart.hpp"
#include "diagnose/search.hpp"

namespace numcheck::app {

/// What is said around a diagnosis.
struct Surroundings {
  std::string notice;                  ///< before everything else: that a device is simulated; empty: nothing
  std::span<const std::string> notes;  ///< what was read from the tensors
  std::string again;                   ///< the command that asks the same again
};

/// Verdict, cause, evidence, what was excluded (all of it if `verbose`), remedy, and how to see it again.
[[nodiscard]] std::string diagnosis_text(const diagnose::Subject& subject, const diagnose::Diagnosis& diagnosis,
                                         const Surroundings& around, bool verbose, bool colour);

/// The verdict and its cause on one line: "d is wrong: C was not added". `notice` as above.
[[nodiscard]] std::string diagnosis_line(const diagnose::Diagnosis& diagnosis, const std::string& notice);

/// How far two results are from each other, a line for each output.
[[nodiscard]] std::string apart_text(const std::vector<diagnose::Apart>& all, bool colour);
/// That the two have different inputs; empty if they have not.
[[nodiscard]] std::string inputs_apart_text(const std::vector<diagnose::Apart>& all, bool colour);

}  // namespace numcheck::app
