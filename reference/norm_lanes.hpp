// The forward normalisations of several rows at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/parallel.hpp"
#include "op/norm_params.hpp"
#include "op/reference.hpp"
#include "reference/norm_kernels.hpp"
#include "reference/tracked_output.hpp"

namespace numcheck::reference {

/// gamma' and beta of all columns, which blocks of rows share.
class NormFactors {
 public:
  /// Those of one of this thread's last two calls, if parameters and numbers are the same; `beta` null: RMSNorm.
  [[nodiscard]] static std::shared_ptr<const NormFactors> of(const op::Operand& gamma, const op::Operand* beta,
                                                             const op::NormParams& p);

  /// gamma', with errors or without.
  template <class Scalar>
  [[nodiscard]] std::span<const Scalar> as() const {
    if constexpr (std::is_same_v<Scalar, double>) {
      return value_;
    } else {
      return tracked_;
    }
  }
  [[nodiscard]] NormColumns columns() const;
  /// Whether products with them cannot overflow or underflow if the other numbers are tame.
  [[nodiscard]] bool tame() const { return tame_; }

 private:
  NormFactors(const op::Operand& gamma, const op::Operand* beta, const op::NormParams& p);
  [[nodiscard]] bool is_of(const op::Operand& gamma, const op::Operand* beta, const op::NormParams& p) const;

  bool zero_centred_;
  std::string add_;
  core::Dtype dtype_;
  std::vector<double> gamma_, beta_;
  std::vector<Tracked> tracked_;
  std::vector<double> value_, bound_, variance_;
  bool tame_ = true;
};

/// Computes y, the statistics and their errors like the formulas of one row, bit for bit, if all numbers are so tame that nothing
/// overflows or underflows. The caller takes the other rows one by one.
class NormLanes {
 public:
  /// `values_only`: statistics come without their errors.
  NormLanes(const op::Operand& x, std::shared_ptr<const NormFactors> factors, double epsilon, bool values_only);

  /// How many rows are taken at a time.
  [[nodiscard]] std::size_t lanes() const { return kernels_.lanes; }

  struct Statistics {
    Tracked mean, rsigma;
    double absolute = 0;  ///< mean magnitude of x
  };
  /// Calls tame(row, statistics) for every row whose numbers are, and one(row) for the others and for those for which tame
  /// returns false; in parallel.
  template <class Tame, class One>
  void for_each_row(const Tame& tame, const One& one) const {
    const auto rows = static_cast<std::size_t>(x_.rows);
    core::parallel_for((rows + lanes() - 1) / lanes(), [&](std::size_t group) {
      const std::size_t first = group * lanes(), last = std::min(rows, first + lanes());
      const auto known = statistics(first);
      for (std::size_t i = first; i < last; ++i) {
        if (!known || !tame(i, (*known)[i - first])) {
          one(i);
        }
      }
    });
  }

  /// Sets y of a row. False if the order of products decides what underflows; then it is to be set again.
  [[nodiscard]] bool set(std::size_t row, const Statistics& statistics, TrackedOutput& y) const;

 private:
  /// Of rows [first, first + lanes()); nothing if one of them is not tame.
  [[nodiscard]] std::optional<std::vector<Statistics>> statistics(std::size_t first) const;

  const op::Operand& x_;
  double epsilon_;
  bool values_only_;
  const NormKernels& kernels_;
  std::shared_ptr<const NormFactors> factors_;
  NormColumns columns_;
};

}  // namespace numcheck::reference
