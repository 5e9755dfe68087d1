// Values of options. They arrive as text and are read here, because the forms that CLI11 takes for numbers ("1'000",
// "0b11") differ between its versions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::app {

/// A whole decimal number between the bounds; throws core::UsageError naming the option.
[[nodiscard]] std::uint64_t parse_count(std::string_view text, std::string_view option, std::uint64_t minimum,
                                        std::uint64_t maximum);

/// "a,b" and repetitions of the option, as one list without empty entries.
[[nodiscard]] std::vector<std::string> split_lists(const std::vector<std::string>& values);

/// Throws core::UsageError with a suggestion unless `word` is one of `legal`.
void require_known(std::string_view word, std::string_view what, const std::vector<std::string_view>& legal);

}  // namespace numcheck::app
