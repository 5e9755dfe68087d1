// How far two results of the same op are from each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// Of the inputs that both have, those that differ: then their outputs are of different products, and may both be right.
[[nodiscard]] std::vector<Apart> inputs_apart(const Subject& a, const Subject& b);

/// `key` is what the port is called: "output" or "input".
[[nodiscard]] nlohmann::json apart_json(const std::vector<Apart>& all, std::string_view key);

}  // namespace numcheck::diagnose
