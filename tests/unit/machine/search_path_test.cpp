#include "machine/search_path.hpp"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

namespace numcheck::machine {
namespace {

TEST(SearchPath, only_absolute_entries_count) {
  setenv("NUMCHECK_TEST_PATH", "/a:.::b/c:../d:/e/../f:", 1);
  EXPECT_EQ(absolute_entries("NUMCHECK_TEST_PATH"), (std::vector<std::filesystem::path>{"/a", "/e/../f"}));
  for (const char* value : {"", ".", "env", "./x", " /x"}) {
    setenv("NUMCHECK_TEST_PATH", value, 1);
    EXPECT_FALSE(absolute_folder("NUMCHECK_TEST_PATH").has_value()) << value;
    EXPECT_TRUE(absolute_entries("NUMCHECK_TEST_PATH").empty()) << value;
  }
  setenv("NUMCHECK_TEST_PATH", "/opt/env", 1);
  EXPECT_EQ(absolute_folder("NUMCHECK_TEST_PATH"), "/opt/env");
  unsetenv("NUMCHECK_TEST_PATH");
  EXPECT_FALSE(absolute_folder("NUMCHECK_TEST_PATH").has_value());
}

TEST(SearchPath, ignored_entries_are_named) {
  const char* before = std::getenv("CUDA_PATH");
  const std::string kept = before == nullptr ? "" : before;
  const auto ignored = [] {
    const std::vector<IgnoredEntry> all = ignored_entries();
    return std::ranges::any_of(all,
                               [](const IgnoredEntry& e) { return e.variable == "CUDA_PATH" && e.entry == "cuda"; });
  };
  setenv("CUDA_PATH", "cuda", 1);
  EXPECT_TRUE(ignored());
  setenv("CUDA_PATH", "/cuda", 1);
  EXPECT_FALSE(ignored());
  setenv("CUDA_PATH", kept.c_str(), 1);
}

}  // namespace
}  // namespace numcheck::machine
