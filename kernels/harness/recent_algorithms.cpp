#include "kernels/harness/recent_algorithms.hpp"

#include <algorithm>

namespace numcheck::kernels::harness {

std::vector<Algorithm> RecentAlgorithms::of(const Call& call,
                                            const std::function<std::vector<Algorithm>(const Call&)>& make) {
  const plan::Case& c = *call.c;
  const auto found = std::ranges::find_if(made_, [&](const Made& made) {
    return made.op == c.op && made.mode == c.mode && made.chained == call.chained && made.asked == c.algorithms &&
           made.params == c.params;
  });
  if (found != made_.end()) {
    return found->algorithms;
  }
  std::vector<Algorithm> algorithms = make(call);
  if (made_.size() == most_) {
    made_.pop_front();
  }
  made_.push_back({c.op, c.params, c.mode, c.algorithms, call.chained, algorithms});
  return algorithms;
}

}  // namespace numcheck::kernels::harness
