#include "verdict/status_doc.hpp"

namespace numcheck::verdict {

std::string_view status_doc(Status status) noexcept {
  switch (status) {
    case Status::pass:
      return "every gate of every output holds, and a wrong result would not have passed";
    case Status::warn:
      return "right for the arithmetic that the library declares, which is less precise than the mode promises; the "
             "reason "
             "names the reduction";
    case Status::fail:
      return "an output is beyond a gate, or a run behaved wrongly: it wrote out of bounds, or in another precision "
             "class";
    case Status::inconclusive:
      return "compared, but the comparison proves little: garbage would also have passed, or every output is the same "
             "number";
    case Status::unsupported:
      return "this device, backend or library does not compute it; the reason is a sentence";
    case Status::skipped:
      return "not attempted, for lack of time (--budget) or memory, or because the run was stopped";
    case Status::error:
      return "the library returned an error, or the program did";
    case Status::crashed:
      return "the worker process died, or the device does not respond any more";
    case Status::timeout:
      return "longer than its time limit (--timeout, or timeout_s of the plan) on the device, or for its reference";
    case Status::xfail:
      return "failed, and is listed as a known failure";
    case Status::xpass:
      return "passed, although it is listed as a known failure: the entry is to be removed";
  }
  return "";
}

}  // namespace numcheck::verdict
