// The vacuity certificate: would garbage also have passed? (trust.md section 5)
#pragma once

#include <string>
#include <vector>

#include "metric/compare.hpp"

namespace numcheck::tolerance {

struct Fake {
  std::string name;      ///< "zeros", "mean", "sign_flipped", "transposed", "tile_zeroed", "last_k_block", "noise",
                         ///< "coarser_format"
  enum class Outcome { rejected, accepted, dropped } outcome = Outcome::rejected;
  std::string detail;    ///< failing gate, or why it was dropped
};

struct Certificate {
  std::vector<Fake> fakes;
  /// Name of an accepted fake, or empty: then the verdict means something.
  [[nodiscard]] std::string vacuous_with() const;
};

/// Judges fakes of the output with the same gates, on a stratified sample of at most 65 536 outputs.
/// `missing_tail` holds the values without the last k block on that same sample, if the op has one (else empty).
[[nodiscard]] Certificate certify(const metric::CompareInput& input);

}  // namespace numcheck::tolerance
