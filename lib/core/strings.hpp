// Small text helpers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::core {

/// Levenshtein distance with transpositions counted as one edit.
[[nodiscard]] std::size_t edit_distance(std::string_view left, std::string_view right);

/// The candidate nearest to `word`, ignoring case, if within 2 edits or a third of its length and not different in
/// every letter; else the shortest that begins with `word` (3 letters or more); else empty. Of equals, the first.
[[nodiscard]] std::string_view nearest_name(std::string_view word, std::span<const std::string_view> candidates);

/// Shortest decimal form that reads back as the same double; "inf", "-inf", "nan".
[[nodiscard]] std::string shortest(double value);

/// "12.3 MiB".
[[nodiscard]] std::string human_bytes(std::uint64_t bytes);

/// Parses "64M", "2GiB", "1.5G", "1000": bytes; throws UsageError naming `what`. K, M, G, T, P and KiB, ... are powers
/// of 1024; KB, MB, GB, TB powers of 1000; case does not matter; fractions of a byte are dropped.
[[nodiscard]] std::uint64_t parse_bytes(std::string_view text, std::string_view what);

/// Parses "500ms", "60s", "10m", "1.5h": seconds; throws UsageError naming `what`, also if the unit is missing.
[[nodiscard]] double parse_duration_s(std::string_view text, std::string_view what);

/// The pieces between separators, empty ones included: n separators make n + 1 pieces.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace numcheck::core
