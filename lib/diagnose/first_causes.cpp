#include "diagnose/first_causes.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "diagnose/explanation.hpp"

namespace numcheck::diagnose {
namespace {

bool are_same(const FirstCause& one, const FirstCause& other) {
  constexpr double kRounding = 1e-12;
  const auto is_near = [](double x, double y) { return std::abs(x - y) <= kRounding * std::abs(y); };
  return is_near(one.rms_left, other.rms_left) && is_near(one.cosine, other.cosine);
}

}  // namespace

void FirstCauses::remember(FirstCause cause) {
  constexpr std::size_t kMost = 16, kMostOfFamily = 6;
  constexpr double kAlike = 1e-3;  // then the one that was tried first comes first
  constexpr double kSomething = 0.02;
  const auto is_known = [&cause](const FirstCause& other) { return are_same(cause, other); };
  if (!(cause.share > kSomething) || std::ranges::any_of(causes_, is_known)) {
    return;
  }
  const std::string family = family_of(cause.hypothesis);
  const auto is_kin = [&family](const FirstCause& other) { return family_of(other.hypothesis) == family; };
  const auto best = std::ranges::find_if(causes_, is_kin);
  constexpr double kAsGood = 0.5;
  if (cause.hypothesis.is_usual && best != causes_.end() && cause.share > kAsGood * best->share) {
    cause.share = std::max(cause.share, best->share + 2 * kAlike);
  }
  if (std::cmp_greater_equal(std::ranges::count_if(causes_, is_kin), kMostOfFamily)) {
    const auto least = std::ranges::find_if(causes_.rbegin(), causes_.rend(), is_kin);
    if (least->share >= cause.share) {
      return;
    }
    causes_.erase(std::next(least).base());
  }
  const auto place =
      std::ranges::find_if(causes_, [&cause](const FirstCause& other) { return other.share < cause.share - kAlike; });
  causes_.insert(place, std::move(cause));
  if (causes_.size() > kMost) {
    causes_.pop_back();
  }
}

std::vector<FirstCause> FirstCauses::take() {
  return std::exchange(causes_, {});
}

}  // namespace numcheck::diagnose
