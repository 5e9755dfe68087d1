#include "interrupt_lines.hpp"

#include <fmt/format.h>

#include "core/printable.hpp"

namespace numcheck::app {

void say_interrupted(Context& context, int count) {
  context.terminal.err(count == 1
                           ? "interrupted: no further case starts; those that run are finished unless their reference "
                             "takes long, then the report is written; a second interrupt ends them now\n"
                           : "interrupted again: the cases that run are given up; the report is written\n");
}

void say_waiting(Context& context, const std::vector<std::string>& work) {
  const std::string others = work.size() > 1 ? fmt::format(" and {} more", work.size() - 1) : "";
  context.terminal.err(fmt::format("waiting for {}{}\n",
                                   work.empty() ? "the cases on the device" : core::printable(work.front()), others));
}

}  // namespace numcheck::app
