// Normalisations of rows whose FP32 sums may overflow. Which of several results is right depends on how a kernel sums, and the
// statistics that it stores show that:
//
//   mu and rsigma are finite  both, and y, as of the row times 2^-80, where nothing overflows
//   rsigma = 0                the squares have overflowed: y = 0 gamma' + beta; or an element as above, where threads merge the
//                             row's sums in different orders (cuDNN 9.14 and 9.19 on an H200: of a row of three, the largest)
//   mu is infinite or NaN, or rsigma NaN beside a mu whose square overflows (E x^2 and mu^2, whose difference is NaN)
//                             y is NaN, or as in one of the two lines above
#pragma once

#include <cstddef>
#include <vector>

#include "op/norm_params.hpp"
#include "op/reference.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {

/// The rows whose sums may overflow.
class OpenRows {
 public:
  explicit OpenRows(std::size_t rows) : open_(rows) {}

  [[nodiscard]] std::size_t size() const noexcept { return open_.size(); }
  /// Called from any thread, once per row.
  void note(std::size_t row, bool may_overflow) { open_[row] = may_overflow ? 1 : 0; }
  /// In an output with so many elements per row.
  void leave(std::size_t elements, TrackedOutput& output) const {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_[i] != 0) {
        output.open(i * elements, elements);
      }
    }
  }

 private:
  std::vector<unsigned char> open_;
};

/// Of a forward pass: see op::Reference::settle. `rounds_product`: x rsigma is rounded to x's format before it is multiplied by
/// gamma'.
[[nodiscard]] std::vector<op::Settled> settle_rows(const op::FindingRequest& request, const op::NormParams& p,
                                                   bool rounds_product = false);

}  // namespace numcheck::reference
