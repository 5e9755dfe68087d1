// Prints random clean GEMM cases for a backend as the JSON list of a plan's "cases": sweep_ops.py runs them.
// gemm_cases BACKEND CASES SEED
#include <cstdio>
#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include "library_case.hpp"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: gemm_cases BACKEND CASES SEED\n");
    return 2;
  }
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  nlohmann::json cases = nlohmann::json::array();
  for (std::uint64_t i = 0; i < count; ++i) {
    cases.push_back(numcheck::plan::case_to_json(numcheck::detect::library_case(seed, i, argv[1])));
  }
  std::puts(cases.dump().c_str());
  return 0;
}
