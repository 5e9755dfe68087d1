// The simulated device as diagnose sees it: every fault that --inject can plant is a way in which outputs may have come about.
#pragma once

#include <memory>

#include "diagnose/simulator.hpp"

namespace numcheck::app {

/// A simulated device of that architecture. Throws core::EnvironmentError if it is not modelled.
[[nodiscard]] std::shared_ptr<const diagnose::Simulator> make_fault_simulator(int sm);

}  // namespace numcheck::app
