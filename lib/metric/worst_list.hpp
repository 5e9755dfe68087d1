// The list of the worst elements. `static`, so that every instruction set keeps its own copy.
#pragma once

#include "metric/accumulators.hpp"

namespace numcheck::metric {

/// Inserts an element if it is worse than the last of a full list. Elements must come in ascending position.
static inline void insert_worst(WorstList& list, double over_bound, std::int64_t position, double got,
                                double expected) {
  if (list.count == kWorst && !(over_bound > list.over_bound[kWorst - 1])) {
    return;
  }
  int at = list.count < kWorst ? list.count++ : kWorst - 1;
  for (; at > 0 && over_bound > list.over_bound[at - 1]; --at) {
    list.over_bound[at] = list.over_bound[at - 1];
    list.position[at] = list.position[at - 1];
    list.got[at] = list.got[at - 1];
    list.expected[at] = list.expected[at - 1];
  }
  list.over_bound[at] = over_bound;
  list.position[at] = position;
  list.got[at] = got;
  list.expected[at] = expected;
}

/// |e| / B that an element must exceed to enter the list.
static inline double entry_over_bound(const WorstList& list) {
  return list.count == kWorst ? list.over_bound[kWorst - 1] : 0;
}

}  // namespace numcheck::metric
