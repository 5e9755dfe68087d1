#include "run/reference_time.hpp"

#include <fmt/format.h>

namespace numcheck::run {

double least_reference_s(const plan::Case& c, const prepare::CatalogRow& row, int threads) {
  // Two fused multiply-adds of eight doubles each per cycle, at 6 GHz, which no core sustains.
  constexpr double kFastestCore = 2 * 8 * 2 * 6e9;
  return row.reference.tracked() ? c.op->flops(c.params) / (kFastestCore * threads) : 0;
}

std::optional<std::string> hopeless_reference(const plan::Case& c, const prepare::CatalogRow& row, double timeout_s,
                                              int threads) {
  const double least = least_reference_s(c, row, threads);
  if (least <= timeout_s) {
    return std::nullopt;
  }
  return fmt::format(
      "its reference takes more than {:.3g} floating-point operations, {:.3g} s at the very least on {} thread{}, and "
      "the "
      "case has {:.4g} s (--timeout, or timeout_s of the plan)",
      c.op->flops(c.params), least, threads, threads == 1 ? "" : "s", timeout_s);
}

}  // namespace numcheck::run
