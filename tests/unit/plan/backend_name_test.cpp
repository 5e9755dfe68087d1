// Versions in names of backends, and the cases that result.
#include "plan/backend_name.hpp"

#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "op/gemm.hpp"

namespace numcheck::plan {
namespace {

Case gemm_case(const std::string& backend, std::int64_t k = 4) {
  Case c;
  c.op = &op::gemm();
  op::GemmParams params;
  params.m = params.n = 2;
  params.k = k;
  c.params = op::to_params(params);
  c.mode = op::find_mode("fp32");
  c.backend = backend;
  c.inputs.common = data::make_distribution("normal");
  c.tags = {"smoke"};
  identify(c);
  return c;
}

const op::Op* only_gemm(std::string_view name) {
  return name == "gemm" ? &op::gemm() : nullptr;
}

TEST(BackendName, has_a_version_after_an_at) {
  EXPECT_EQ(backend_of("transformer_engine@2.20.2"), "transformer_engine");
  EXPECT_EQ(version_of("transformer_engine@2.20.2"), "2.20.2");
  EXPECT_EQ(backend_of("cuda"), "cuda");
  EXPECT_EQ(version_of("cuda"), "");
}

TEST(BackendName, is_a_word_perhaps_with_a_version) {
  for (const char* name : {"sim", "transformer_engine@2.20.2", "te@2.21.0.dev0+1a2b3c4", "te@2.20.2-a", "te@unknown"}) {
    EXPECT_TRUE(is_backend_name(name)) << name;
  }
  for (const char* name : {"", "@2.20.2", "te@", "te@2@3", "Te", "te@2.20/../x", "te 2", "te@2 0", "te@2\n"}) {
    EXPECT_FALSE(is_backend_name(name)) << name;
  }
  EXPECT_TRUE(is_backend_name(std::string(64, 'a')));
  EXPECT_FALSE(is_backend_name(std::string(65, 'a')));
}

TEST(BackendName, is_made_of_any_version) {
  EXPECT_EQ(versioned_backend("te", "2.20.2"), "te@2.20.2");
  EXPECT_EQ(versioned_backend("te", "2.20 (x/y)"), "te@2.20__x_y_");
  EXPECT_TRUE(is_backend_name(versioned_backend("te", std::string(200, '/'))));
}

TEST(OneCasePerVersion, replaces_the_cases_of_the_backend_in_place) {
  const std::vector<std::string> names = {"te@2.20.2", "te@2.11.0"};
  const std::vector<Case> plan = {gemm_case("te"), gemm_case("cuda"), gemm_case("te", 8), gemm_case("te_other")};
  const std::vector<Case> cases = one_case_per_version(plan, "te", names);
  std::vector<std::string> ids;
  std::set<core::Digest> digests;
  for (const Case& c : cases) {
    ids.push_back(c.id);
    digests.insert(c.digest);
    EXPECT_EQ(c.tags, std::vector<std::string>{"smoke"});
  }
  EXPECT_EQ(ids, (std::vector<std::string>{"gemm/m=2,n=2,k=4/fp32/te@2.20.2", "gemm/m=2,n=2,k=4/fp32/te@2.11.0",
                                           "gemm/m=2,n=2,k=4/fp32/cuda", "gemm/m=2,n=2,k=8/fp32/te@2.20.2",
                                           "gemm/m=2,n=2,k=8/fp32/te@2.11.0", "gemm/m=2,n=2,k=4/fp32/te_other"}));
  EXPECT_EQ(digests.size(), cases.size());
  EXPECT_EQ(cases[2].digest, plan[1].digest) << "other backends keep their digests";
  EXPECT_EQ(without_version(cases[1]).digest, plan[0].digest);
  EXPECT_EQ(without_version(cases[1]).id, plan[0].id);
  EXPECT_EQ(without_version(cases[2]).digest, plan[1].digest);
}

TEST(OneCasePerVersion, makes_cases_that_exec_reads) {
  const std::vector<std::string> names = {"te@2.20.2"};
  const Case made = one_case_per_version({gemm_case("te")}, "te", names).front();
  const Case read = case_from_json(case_to_json(made), &only_gemm);
  EXPECT_EQ(read.backend, "te@2.20.2");
  EXPECT_EQ(read.digest, made.digest);
}

}  // namespace
}  // namespace numcheck::plan
