#include "tolerance/criterion_words.hpp"

#include <cmath>

#include <fmt/format.h>

#include "core/counted.hpp"

namespace numcheck::tolerance {

std::string words_of(const Criterion& criterion) {
  using About = Criterion::About;
  if (is_conduct(criterion.about)) {
    return fmt::format("{}: {}", criterion.name, criterion.source);
  }
  if (std::isnan(criterion.measured)) {
    return fmt::format("{} is not a number; at most {:.4g} is allowed", criterion.name, criterion.limit);
  }
  if (std::isinf(criterion.measured)) {
    return fmt::format("{} is infinite; at most {:.4g} is allowed", criterion.name, criterion.limit);
  }
  const bool counts_elements = criterion.about == About::pattern || criterion.about == About::unwritten;
  if (criterion.limit == 0 && counts_elements) {
    return fmt::format("{}: {}", criterion.name, core::counted(criterion.measured, "element"));
  }
  if (criterion.limit == 0) {
    return fmt::format("{} {:.4g}, must be 0", criterion.name, criterion.measured);
  }
  return fmt::format("{} {:.4g} > {:.4g}", criterion.name, criterion.measured, criterion.limit);
}

}  // namespace numcheck::tolerance
