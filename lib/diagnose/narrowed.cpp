#include "diagnose/narrowed.hpp"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <memory>

#include "core/buffer.hpp"
#include "core/parallel.hpp"

namespace numcheck::diagnose {

prepare::SharedDoubles narrowed(const prepare::SharedDoubles& from, core::Dtype to, core::Rounding rounding) {
  auto values = std::make_shared<core::Buffer<double>>(from->size());
  std::atomic<bool> changed = false;
  constexpr std::size_t kPerTask = std::size_t{1} << 14;
  core::parallel_chunks(from->size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
    bool here = false;
    for (std::size_t i = begin; i < end; ++i) {
      (*values)[i] = core::round_to((*from)[i], to, core::Overflow::ieee, rounding);
      here = here || ((*values)[i] != (*from)[i] && !std::isnan((*from)[i]));
    }
    if (here) {
      changed = true;
    }
  });
  return changed ? values : nullptr;
}

}  // namespace numcheck::diagnose
