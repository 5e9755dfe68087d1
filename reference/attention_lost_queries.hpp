// Attention's gradients of keys and values that lack the parts of some queries.
#pragma once

#include <vector>

#include "op/reference.hpp"

namespace numcheck::reference {

/// dk and dv are sums over blocks of queries, which kernels add one after the other, or several at once. Where such a block
/// gets lost, a row is
///
///   dk_j = scale sum_B m_B sum_i dt_ij q_i     dv_j = sum_B m_B sum_i p_ij do_i     i in block B of 64 queries of a head
///
/// with m_B of 0 or 1. Finds the m_B of every row with errors that most do not have, and names the cause if they explain what
/// is wrong with those rows, and some of them lack a part only. Not where rows have fewer than two numbers for each m_B.
///
/// Seen in cuDNN 9.14 to 9.19: FP8 gradients of padded sequences with a causal mask, where many heads run at once; other
/// rows in each run.
void explain_lost_queries(const op::FindingRequest& request, std::vector<op::Finding>& findings);

}  // namespace numcheck::reference
