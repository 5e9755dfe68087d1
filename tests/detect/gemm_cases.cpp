// Prints random clean GEMM cases for a backend as the JSON list of a plan's "cases": sweep_ops.py runs them.
// gemm_cases BACKEND CASES SEED
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "library_case.hpp"

namespace {

/// The whole word as a number; nothing if it is not one.
std::optional<std::uint64_t> number(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(value) : std::nullopt;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::array<std::string_view, 4> kBackends = {"sim", "cuda", "cublaslt", "transformer_engine"};
  const std::vector<std::string_view> words(argv + std::min(argc, 1), argv + argc);
  const bool known = words.size() == 3 && std::ranges::find(kBackends, words[0]) != kBackends.end();
  const auto count = known ? number(words[1]) : std::nullopt;
  const auto seed = known ? number(words[2]) : std::nullopt;
  if (!count || !seed) {
    std::fprintf(stderr, "usage: gemm_cases sim|cuda|cublaslt|transformer_engine CASES SEED\n");
    return 2;
  }
  nlohmann::json cases = nlohmann::json::array();
  for (std::uint64_t i = 0; i < *count; ++i) {
    cases.push_back(numcheck::plan::case_to_json(numcheck::detect::library_case(*seed, i, words[0])));
  }
  std::puts(cases.dump().c_str());
  return 0;
}
