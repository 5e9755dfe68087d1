// Sentences with numbers in braces.
#pragma once

#include <string>
#include <string_view>

#include "eligibility/facts.hpp"

namespace numcheck::eligibility {

/// The sentence with each "{name}" replaced by the number of that name; an unknown number is "?". Throws
/// core::InternalError if there is no such number.
[[nodiscard]] std::string fill_in(std::string_view sentence, const Facts& facts);

}  // namespace numcheck::eligibility
