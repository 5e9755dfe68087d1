// What a run says when it is interrupted.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace numcheck::app {

/// After the first signal: what happens now, and what a second one does; after the second: that the run ends.
void say_interrupted(Context& context, int count);

/// The work that the run still waits for, after the first signal.
void say_waiting(Context& context, const std::vector<std::string>& work);

}  // namespace numcheck::app
