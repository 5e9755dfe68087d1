#include "reference/cause.hpp"

#include <utility>

#include <fmt/format.h>

namespace numcheck::reference {

op::Finding cause_finding(const op::KnownCause& known, std::string_view port, double share, std::string cause,
                          std::string_view what, op::Finding::About about) {
  std::string text = fmt::format("{}; this explains {:.4g} % of {}", cause, 100 * share, what);
  return {.name = std::string(known.name),
          .port = std::string(port),
          .measured = share,
          .text = std::move(text),
          .cause = std::move(cause),
          .about = about};
}

}  // namespace numcheck::reference
