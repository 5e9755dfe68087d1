// Which of many cases has an identifier.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "plan/case.hpp"

namespace numcheck::plan {

/// A hash table of indices, which costs less than a second copy of every identifier.
class IdIndex {
 public:
  /// Makes room for that many cases.
  void reserve(std::size_t cases) { grow(std::bit_ceil(std::max<std::size_t>(2 * cases, kFewest)), {}); }

  /// The index of the case with that identifier; if there is none, that of a case which now follows.
  std::size_t find_or_add(const std::string& id, const std::vector<Case>& cases) {
    if (2 * (cases.size() + 1) > slots_.size()) {
      grow(std::max(2 * slots_.size(), kFewest), cases);
    }
    for (std::size_t at = start_of(id);; at = (at + 1) % slots_.size()) {
      if (slots_[at] == kFree) {
        slots_[at] = cases.size();
        return cases.size();
      }
      if (cases[slots_[at]].id == id) {
        return slots_[at];
      }
    }
  }

 private:
  static constexpr std::size_t kFree = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kFewest = 64;

  [[nodiscard]] std::size_t start_of(const std::string& id) const {
    return std::hash<std::string>()(id) & (slots_.size() - 1);
  }
  void grow(std::size_t slots, const std::vector<Case>& cases) {
    slots_.assign(slots, kFree);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      std::size_t at = start_of(cases[i].id);
      while (slots_[at] != kFree) {
        at = (at + 1) % slots_.size();
      }
      slots_[at] = i;
    }
  }

  std::vector<std::size_t> slots_;
};

}  // namespace numcheck::plan
