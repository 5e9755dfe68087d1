// The vacuity certificate: would garbage also have passed? (trust.md section 5)
#pragma once

#include <span>
#include <string>
#include <vector>

#include "metric/compare.hpp"

namespace numcheck::tolerance {

struct Fake {
  std::string name;  ///< "zeros", "mean", "sign_flipped", "transposed", "tile_zeroed", "last_k_block", "noise",
      ///< "enlarged", "coarser_format", "nan", "infinity", "constant", op::Finding::fake, or op::Mistake::name
  /// not_told: a mistake in the formula that these inputs do not show; it does not make the verdict mean less of the rest.
  enum class Outcome { rejected, accepted, dropped, not_told } outcome = Outcome::rejected;
  std::string detail;  ///< failing gate ("bf16: G2 rms" for a coarser format), why it was dropped, or op::Mistake::text
  bool within_error = false;  ///< dropped because its error is no larger than the predicted one
};

/// What an op would yield with a mistake in its formula.
struct WrongFormula {
  std::string name, text;      ///< of op::Mistake
  std::vector<double> values;  ///< of the elements of certificate_sample()
};

struct Certificate {
  std::vector<Fake> fakes;
  /// Name of an accepted fake, or empty: then the verdict means something.
  [[nodiscard]] std::string vacuous_with() const;
  /// The mean in place of every element lies within the predicted error, and zeros do not: no gate knows which is which.
  [[nodiscard]] bool is_constant_within_error() const;
};

/// Indices of the outputs that the certificate looks at: all of them, or a grid of evenly spaced rows and columns, or
/// evenly spaced elements of the comparison's own sample; at most 65 536. `missing_tail` of the input refers to them.
[[nodiscard]] op::Sample certificate_sample(const op::Port& port, const op::Sample* sample);

/// Judges fakes of the output with the same gates:
///
///   zeros, mean, sign_flipped   of the expected values
///   transposed                  as if rows had been stored as columns; all elements must be referenced
///   tile_zeroed                 the 64 x 64 tile around the middle
///   last_k_block                the values without the last min(64, ceil(k/2)) products: input.missing_tail, or else
///                               y - f y - sqrt(f (1-f) S2) xi with f the block's share of k and xi normal
///   noise                       rms(y) xi
///   enlarged                    1.1 y; in 8 bits (1 + 4 u) y, which is two steps of the format
///   coarser_format              the expected values rounded to the first of tf32, bf16, fp8_e4m3, fp8_e5m2 whose rms
///                               of e / sqrt(V) exceeds 2 kappa; not in the exact leg
///
///   nan, infinity, constant     everywhere, also where the reference is not finite; the constant is rms(y)
///
/// In the others, elements that are not finite in the reference stay as they are. A fake is dropped if it equals the
/// rounded reference, unless the only elements in which it may differ are not judged; if it is none of zeros,
/// sign_flipped and noise and lies within the predicted error (rms of e / sqrt(V) at most 1); if it is noise,
/// enlarged or last_k_block and passes with fewer than 32 outputs, which allow no statistics; and if it is coarser_format
/// and G2 judges no rms (has_rms).
///
/// `enlarged` is dropped as within the predicted error wherever no gate fails.
///
/// A wrong formula whose result passes is reported as not told.
[[nodiscard]] Certificate certify(const metric::CompareInput& input, std::span<const WrongFormula> formulas = {});

/// Wrong formulas only: of outputs that are a single number of others, such as a largest magnitude.
[[nodiscard]] Certificate certify_formulas(const metric::CompareInput& input, std::span<const WrongFormula> formulas);

}  // namespace numcheck::tolerance
