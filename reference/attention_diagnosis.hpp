// What may explain attention that failed a gate.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// Tries what libraries have been seen to do:
///   - masked scores are -infinity before they are scaled by a negative number: rows of NaN, with a log-sum-exp of infinity
///   - the log-sum-exp lacks slope (keys - queries), ALiBi's shift of the diagonal
///   - sequences with queries, but without keys, are left unwritten
///   - NaN and infinities of values that are masked out reach the output
///   - the sink is left out of the denominator
///   - queries that are padding count in s_amax and o_amax
///   - queries of zeros beyond the last one count in o_amax
///   - scores that are stored in FP16 overflow
/// A finding names the cause if it explains 90 % of what is wrong with an output.
[[nodiscard]] std::vector<op::Finding> diagnose_attention(const op::FindingRequest& request);

/// The same of gradients:
///   - NaN in queries whose log-sum-exp is so small that its negative exponential overflows in FP32
///   - sequences without queries or without keys are left unwritten, or, where heads share keys, hold sums of such memory
///   - NaN and infinities that are masked out reach the gradients
///   - half of the channels of the last rows of dq are zero, in FP8
///   - keys lack the parts of whole blocks of 64 queries
///   - keys of zeros beyond the last one count in dp_amax
[[nodiscard]] std::vector<op::Finding> diagnose_attention_gradients(const op::FindingRequest& request);

}  // namespace numcheck::reference
