// Where a run's time goes.
#pragma once

#include <chrono>

namespace numcheck::prepare {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

/// Seconds of each stage of a case, of a group or, summed, of a run. Stages overlap.
struct StageTimes {
  double inputs_s = 0;
  double device_s = 0;
  double reference_s = 0;
  double yardsticks_s = 0;
  double comparison_s = 0;

  StageTimes& operator+=(const StageTimes& other) noexcept {
    inputs_s += other.inputs_s;
    device_s += other.device_s;
    reference_s += other.reference_s;
    yardsticks_s += other.yardsticks_s;
    comparison_s += other.comparison_s;
    return *this;
  }
};

}  // namespace numcheck::prepare
