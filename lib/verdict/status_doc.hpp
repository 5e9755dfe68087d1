// What statuses mean, for people.
#pragma once

#include <string_view>

#include "verdict/record.hpp"

namespace numcheck::verdict {

/// One sentence without a full stop.
[[nodiscard]] std::string_view status_doc(Status status) noexcept;

}  // namespace numcheck::verdict
