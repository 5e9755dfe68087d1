#include "metric/merge.hpp"

#include <algorithm>
#include <iterator>

#include "metric/worst_list.hpp"

namespace numcheck::metric {
namespace {

template <class T>
void add(T (&into)[kLanes], const T (&from)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    into[i] += from[i];
  }
}

void raise(double (&into)[kLanes], const double (&from)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    into[i] = std::max(into[i], from[i]);
  }
}

void merge(ErrorSums& into, const ErrorSums& from) {
  add(into.e, from.e);
  add(into.abs_e, from.abs_e);
  add(into.e2, from.e2);
  add(into.y, from.y);
  add(into.y2, from.y2);
  add(into.ey, from.ey);
  raise(into.max_abs, from.max_abs);
  add(into.nonzero, from.nonzero);
  add(into.toward_zero, from.toward_zero);
  into.max_rel = std::max(into.max_rel, from.max_rel);
}

void merge(UlpSums& into, const UlpSums& from) {
  add(into.sum, from.sum);
  raise(into.max, from.max);
  add(into.inexact, from.inexact);
  add(into.zeros, from.zeros);
}

void merge(PredicateSums& into, const PredicateSums& from) {
  add(into.mismatches, from.mismatches);
  into.max_excess = std::max(into.max_excess, from.max_excess);
}

void merge(GateSums& into, const GateSums& from) {
  add(into.z2, from.z2);
  raise(into.z2_max, from.z2_max);
  add(into.aa, from.aa);
  add(into.ab, from.ab);
  add(into.bb, from.bb);
  add(into.coherence, from.coherence);
  add(into.addends, from.addends);
}

void merge(RoundingSums& into, const RoundingSums& from) {
  add(into.count, from.count);
  add(into.ratio, from.ratio);
  add(into.perfect, from.perfect);
  add(into.perfect2, from.perfect2);
  add(into.arith, from.arith);
  into.max_over_half_ulp = std::max(into.max_over_half_ulp, from.max_over_half_ulp);
}

void merge(FlipSums& into, const FlipSums& from) {
  for (int c = 0; c < kFlipClasses; ++c) {
    add(into.count[c], from.count[c]);
    add(into.found[c], from.found[c]);
    add(into.allowed[c], from.allowed[c]);
  }
  add(into.predicted, from.predicted);
  add(into.spread, from.spread);
  add(into.alike, from.alike);
  add(into.drift, from.drift);
  add(into.nearer, from.nearer);
  raise(into.step, from.step);
}

void merge(LatticeSums& into, const LatticeSums& from) {
  for (int l = 0; l < kLattices; ++l) {
    add(into.count[l], from.count[l]);
    add(into.found[l], from.found[l]);
    add(into.expected[l], from.expected[l]);
  }
}

void merge(TermSums& into, const TermSums& from) {
  add(into.rho2, from.rho2);
  add(into.scaled, from.scaled);
  into.backward = std::max(into.backward, from.backward);
  into.ulps = std::max(into.ulps, from.ulps);
  add(into.conditioned, from.conditioned);
  for (int c = 0; c < kConditions; ++c) {
    add(into.condition[c], from.condition[c]);
  }
}

void merge(WorstList& into, const WorstList& from) {
  for (int i = 0; i < from.count; ++i) {
    insert_worst(into, from.over_bound[i], from.position[i], from.got[i], from.expected[i]);
  }
}

}  // namespace

void merge(Accumulators& into, const Accumulators& from) {
  merge(into.arithmetic, from.arithmetic);
  merge(into.total, from.total);
  merge(into.ulps, from.ulps);
  merge(into.torch, from.torch);
  merge(into.numpy, from.numpy);
  merge(into.te, from.te);
  merge(into.plan, from.plan);
  merge(into.gates, from.gates);
  merge(into.rounding, from.rounding);
  merge(into.flips, from.flips);
  merge(into.lattice, from.lattice);
  merge(into.terms, from.terms);
  merge(into.worst, from.worst);
  into.plan_over_bound = std::min(into.plan_over_bound, from.plan_over_bound);
}

void merge(SpecialCounts& into, const SpecialCounts& from) {
  into.padding += from.padding;
  into.removed += from.removed;
  into.mismatches += from.mismatches;
  into.unknown += from.unknown;
  into.undetermined += from.undetermined;
  into.outside += from.outside;
  into.left_out += from.left_out;
  into.order_dependent += from.order_dependent;
  into.poison += from.poison;
  into.inexact += from.inexact;
  into.plan += from.plan;
  merge(into.worst, from.worst);
}

double total_of(const double (&lanes)[kLanes]) {
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

std::uint64_t total_of(const std::int64_t (&lanes)[kLanes]) {
  std::uint64_t total = 0;
  for (const std::int64_t lane : lanes) {
    total += static_cast<std::uint64_t>(lane);
  }
  return total;
}

double largest_of(const double (&lanes)[kLanes]) {
  return *std::max_element(std::begin(lanes), std::end(lanes));
}

}  // namespace numcheck::metric
