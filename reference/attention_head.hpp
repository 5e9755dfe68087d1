// One head of attention, forward.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/attention_problem.hpp"

namespace numcheck::reference {

/// Keys and values of one head, with what error models need of them.
struct AttentionHead {
  AttentionHead(const AttentionProblem& p, std::int64_t in_batch, std::int64_t head, bool only_values);

  const AttentionProblem& problem;
  std::int64_t batch, index;
  Lengths lengths;
  HeadRows queries, keys, values;
  bool values_only;
  FiniteRows finite;                    ///< values
  std::vector<double> value_squares;    ///< sum of v_jc^2 over the finite values, of each channel
  std::vector<double> value_sums;       ///< sum of |v_jc| over the finite numbers of each channel
  double value_range = 0;               ///< by how much the finite numbers of a channel differ, at most
  double range_from_zero = 0;           ///< the same with 0 among them
  std::vector<double> key_squares;      ///< |k_j|^2 of each key
  std::vector<double> channel_squares;  ///< mean of k_jc^2 over the finite keys, of each channel
  double mean_square = 0;               ///< and of |k_j|^2
  double query_spread = 0;    ///< tolerance::AttentionFact::query_spread, without a cap; infinite for a single query
  bool uneven = false;        ///< a channel is much longer than the mean: |q| |k| says little of sum |q_c k_c|
  double largest_square = 0;  ///< of |k_j|^2, without channels that are not finite
  bool keys_vanish = false;   ///< one has a channel that TF32 rounds to zero
  bool keys_are_infinite = false;  ///< one has a channel that is infinite

 private:
  void measure_values();
  void square_keys();
  void measure_queries();
};

}  // namespace numcheck::reference
