#include "core/counted.hpp"

#include <fmt/format.h>

namespace numcheck::core {

std::string counted(double count, std::string_view noun) {
  return fmt::format("{:.0f} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace numcheck::core
