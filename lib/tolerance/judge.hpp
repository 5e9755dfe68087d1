// Gates: from statistics to a verdict.
#pragma once

#include <string>
#include <vector>

#include "metric/compare.hpp"
#include "model/error_model.hpp"
#include "plan/case.hpp"

namespace numcheck::tolerance {

/// A plan's own limit that is looser than this multiple of the error bound accepts what no correct kernel does.
inline constexpr double kLooseLimit = 10;
/// A plan's own atol of fewer ulps of a typical output refuses correct rounding.
inline constexpr double kFewestUlp = 1;

/// One gate: ok = measured <= limit, so that NaN fails.
struct Criterion {
  std::string name;  ///< "G1 bound"
  double measured = 0;
  double limit = 0;
  bool ok = false;
  std::string source;
  /// How far the numbers are off; the same, where the output's own rounding to 16 or 8 bits takes up to all of the limit;
  /// which are NaN or infinite; which were not written; how the run behaved: what it wrote besides, and in which class it
  /// computed; or whether it repeats.
  enum class About { errors, rounding, pattern, unwritten, conduct, repetition } about = About::errors;
};

/// Whether the gate looks at the run and not at the output's numbers.
[[nodiscard]] constexpr bool is_conduct(Criterion::About about) noexcept {
  return about == Criterion::About::conduct || about == Criterion::About::repetition;
}

/// Facts other than the numbers that gates depend on.
struct RunFacts {
  bool guards_intact = true;
  bool inputs_intact = true;
  bool deterministic = true;
  model::PrecisionClass expected = model::PrecisionClass::native;
  model::PrecisionClass observed = model::PrecisionClass::unknown;  ///< unknown: not classified, hence not gated
};

/// All gates in order (trust.md section 3); none is skipped because an earlier one failed.
[[nodiscard]] std::vector<Criterion> judge(const metric::Statistics& statistics, const model::ErrorModel& model,
                                           const RunFacts& facts, const plan::ToleranceSpec& extra);

/// True if there are enough outputs, and enough independent errors among them, for G2 to judge an rms.
[[nodiscard]] bool has_rms(const metric::Statistics& statistics);

/// Largest measured / limit of the criteria: the number that summarises a case.
[[nodiscard]] double tightest(const std::vector<Criterion>& criteria);

/// lambda(N) = sqrt(2 ln(2 N / 1e-6)).
[[nodiscard]] double lambda_of(std::uint64_t elements);

}  // namespace numcheck::tolerance
