#include "machine/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

namespace numcheck::machine {
namespace {

const VariableState* find(const std::vector<VariableState>& states, std::string_view name) {
  const auto found = std::find_if(states.begin(), states.end(), [&](const auto& state) { return state.name == name; });
  return found == states.end() ? nullptr : &*found;
}

TEST(Environment, records_set_and_unset_variables) {
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  ::unsetenv("CUBLAS_WORKSPACE_CONFIG");
  ::setenv("CUBLAS_EMULATION_STRATEGY", "", 1);
  const auto states = numeric_environment();
  ASSERT_NE(find(states, "NVIDIA_TF32_OVERRIDE"), nullptr);
  EXPECT_EQ(find(states, "NVIDIA_TF32_OVERRIDE")->value, "0");
  ASSERT_NE(find(states, "CUBLAS_WORKSPACE_CONFIG"), nullptr);
  EXPECT_EQ(find(states, "CUBLAS_WORKSPACE_CONFIG")->value, std::nullopt);
  EXPECT_EQ(find(states, "CUBLAS_EMULATION_STRATEGY")->value, "") << "empty is not unset";
  ::unsetenv("NVIDIA_TF32_OVERRIDE");
  ::unsetenv("CUBLAS_EMULATION_STRATEGY");
}

TEST(Environment, contains_what_cublaslt_reads_when_a_handle_is_made) {
  const auto states = numeric_environment();
  for (const char* name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION",
                           "CUBLAS_EMULATION_STRATEGY", "CUBLAS_FIXEDPOINT_EMULATION_MANTISSA_BIT_COUNT"}) {
    EXPECT_NE(find(states, name), nullptr) << name;
  }
  std::set<std::string_view> names;
  for (const NumericVariable& row : numeric_variables()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is listed twice";
    EXPECT_FALSE(row.doc.empty());
  }
}

TEST(Environment, shows_unknown_relatives_but_no_paths) {
  ::setenv("CUBLASLT_SOMETHING_NEW", "7", 1);
  ::setenv("CUDNN_LOGDEST_DBG", "/home/someone/log", 1);
  ::setenv("UNRELATED_VARIABLE", "1", 1);
  const auto states = numeric_environment();
  ASSERT_NE(find(states, "CUBLASLT_SOMETHING_NEW"), nullptr);
  EXPECT_FALSE(find(states, "CUBLASLT_SOMETHING_NEW")->listed);
  EXPECT_EQ(find(states, "CUBLASLT_SOMETHING_NEW")->value, "7");
  EXPECT_EQ(find(states, "CUDNN_LOGDEST_DBG")->value, "(path)");
  EXPECT_EQ(find(states, "UNRELATED_VARIABLE"), nullptr);
  ::unsetenv("CUBLASLT_SOMETHING_NEW");
  ::unsetenv("CUDNN_LOGDEST_DBG");
  ::unsetenv("UNRELATED_VARIABLE");
}

}  // namespace
}  // namespace numcheck::machine
