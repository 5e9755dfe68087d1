// How far two results of the same op are from each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

struct Apart {
  std::string port;
  std::uint64_t elements = 0;
  std::uint64_t different = 0;  ///< numbers, not bits: NaN is like NaN, and -0 like 0
  double rel_l2 = 0;            ///< |a - b|_2 / |b|_2 over elements that are finite in both
  double largest = 0;           ///< |a - b|
};

/// Of the outputs that both have.
[[nodiscard]] std::vector<Apart> apart(const Subject& a, const Subject& b);

[[nodiscard]] nlohmann::json apart_json(const std::vector<Apart>& all);

}  // namespace numcheck::diagnose
