// Values of options. They arrive as text and are parsed here, because which forms CLI11 accepts as numbers ("1'000",
// "0b11") differs between its versions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::app {

/// A whole decimal number between the bounds; throws core::UsageError naming the option.
[[nodiscard]] std::uint64_t parse_count(std::string_view text, std::string_view option, std::uint64_t minimum,
                                        std::uint64_t maximum);

/// A decimal number between the bounds; throws core::UsageError naming the option.
[[nodiscard]] double parse_number(std::string_view text, std::string_view option, double minimum, double maximum);

/// "500ms", "60s", "1.5h" in seconds; throws core::UsageError naming the option unless it is more than 0 and at most
/// `maximum_s`.
[[nodiscard]] double parse_time_s(std::string_view text, std::string_view option, double maximum_s);

/// "a,b" and repetitions of the option, as one list; throws core::UsageError naming the option if an entry is empty.
[[nodiscard]] std::vector<std::string> split_lists(const std::vector<std::string>& values, std::string_view option);

/// Who set a value that an environment variable may also set, for messages: the variable's name if it has this value,
/// otherwise the option's.
[[nodiscard]] std::string_view set_by(std::string_view value, std::string_view option, const char* variable);

/// Throws core::UsageError with a suggestion unless `word` is one of `legal`.
void require_known(std::string_view word, std::string_view what, const std::vector<std::string_view>& legal);

}  // namespace numcheck::app
