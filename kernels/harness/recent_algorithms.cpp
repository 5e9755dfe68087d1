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
  if (algorithms.size() > most_) {
    return algorithms;
  }
  for (; kept_ + algorithms.size() > most_; made_.pop_front()) {
    kept_ -= made_.front().algorithms.size();
  }
  made_.push_back({c.op, c.params, c.mode, c.algorithms, call.chained, algorithms});
  kept_ += algorithms.size();
  return algorithms;
}

}  // namespace numcheck::kernels::harness
