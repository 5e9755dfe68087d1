#include "report/contract.hpp"

#include <array>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

json record(const std::string& id, const char* status) {
  return {{"id", id}, {"digest", id}, {"status", status}, {"reason", "because"}};
}

json sample_report(const char* plan = "sample") {
  return {{"plan", {{"name", plan}, {"digest", "xxh128:1"}}},
          {"machine",
           {{"device", {{"name", "NVIDIA X"}, {"sm", 90}, {"simulated", false}}},
            {"libraries",
             {{"cublaslt", "13.1.0 (libcublasLt.so.13)"},
              {"cuda_driver", "13.0"},
              {"transformer_engine", "of unknown version (libtransformer_engine.so)"}}}}},
          {"cases",
           {record("op/z/fp32/cuda", "pass"), record("op/a/fp32/cuda", "warn"), record("op/b/fp32/cuda", "fail"),
            record("op/c/fp32/cuda", "xfail"), record("op/d/fp32/cuda", "inconclusive"),
            record("op/e/fp32/cuda", "unsupported"), record("op/f/fp32/cuda", "crashed"),
            record("op/g/fp32/cuda", "skipped")}}};
}

Contract sample_contract() {
  const json report = sample_report();
  return contract_of(std::array{&report});
}

TEST(Contract, promises_what_had_a_verdict) {
  const Contract contract = sample_contract();
  EXPECT_EQ(contract.sm, 90);
  ASSERT_EQ(contract.plans.size(), 1U);
  EXPECT_EQ(contract.plans[0].cases, (std::set<std::string>{"op/a/fp32/cuda", "op/b/fp32/cuda", "op/c/fp32/cuda",
                                                            "op/d/fp32/cuda", "op/z/fp32/cuda"}));
  EXPECT_EQ(contract.plans[0].libraries, (PromisedVersions{{"cublaslt", {{13, 1, 0}}}, {"transformer_engine", {}}}));
}

TEST(Contract, text_round_trips_with_one_line_a_case) {
  const std::string text = contract_text(sample_contract());
  EXPECT_EQ(contract_text(parse_contract(text, "x")), text);
  EXPECT_NE(text.find("\n\"op/a/fp32/cuda\",\n\"op/b/fp32/cuda\",\n"), std::string::npos) << text;
  EXPECT_EQ(json::parse(text)["plans"][0]["libraries"],
            (json{{"cublaslt", "13.1.0"}, {"transformer_engine", nullptr}}));
}

TEST(Contract, is_kept_by_a_verdict_and_broken_by_anything_else) {
  json report = sample_report();
  EXPECT_EQ(check_contract(sample_contract(), report, {}), (json{{"digest", ""},
                                                                 {"promised", 5},
                                                                 {"kept", 5},
                                                                 {"not_selected", 0},
                                                                 {"absent_libraries", json::array()},
                                                                 {"broken", json::array()}}));
  for (const char* status : {"unsupported", "skipped", "error", "crashed", "timeout"}) {
    report["cases"][0]["status"] = status;
    const json found = check_contract(sample_contract(), report, {"op/z/fp32/cuda"});
    EXPECT_EQ(found["kept"], 4);
    EXPECT_EQ(found["broken"], json::array({{{"id", "op/z/fp32/cuda"}, {"status", status}, {"reason", "because"}}}));
  }
  report["cases"].erase(0);
  EXPECT_EQ(check_contract(sample_contract(), report, {})["broken"][0]["status"], "missing");
  EXPECT_EQ(check_contract(sample_contract(), report, {"op/z/fp32/cuda"})["not_selected"], 1);
}

TEST(Contract, of_an_identifier_that_occurs_twice_needs_both) {
  json report = sample_report();
  for (const std::size_t place : {std::size_t{0}, report["cases"].size()}) {
    json twice = report;
    twice["cases"].insert(twice["cases"].begin() + static_cast<std::ptrdiff_t>(place),
                          record("op/z/fp32/cuda", "unsupported"));
    EXPECT_EQ(check_contract(sample_contract(), twice, {})["broken"].size(), 1U);
  }
}

TEST(Contract, of_a_library_version_counts_where_there_is_that_version) {
  json report = sample_report();
  Contract contract = sample_contract();
  contract.plans[0].cases.insert("op/a/fp32/transformer_engine@2.11.0");
  EXPECT_EQ(check_contract(contract, report, {})["not_selected"], 1);
  report["machine"]["libraries"]["transformer_engine@2.11.0"] = "2.11.0";
  EXPECT_EQ(check_contract(contract, report, {})["broken"].size(), 1U);
}

TEST(Contract, of_another_setting_does_not_hold) {
  const Contract contract = sample_contract();
  ContractSetting setting = setting_of(sample_report());
  EXPECT_EQ(setting_problem(contract, "sample", setting), "");
  setting.libraries[0].second = "13.2.0";
  EXPECT_EQ(setting_problem(contract, "sample", setting), "it is about cublaslt 13.1.0, and here is 13.2.0");
  EXPECT_EQ(setting_problem(contract, "another", setting), "");
  setting.libraries.erase(setting.libraries.begin());
  EXPECT_EQ(setting_problem(contract, "sample", setting), "") << "a library that is gone breaks promises";
  for (auto& [name, version] : setting.libraries) {
    version = "2.20.2";
  }
  EXPECT_EQ(setting_problem(contract, "sample", setting), "") << "the version was unknown";
  setting.sm = 80;
  EXPECT_EQ(setting_problem(contract, "sample", setting), "it is about sm_90, and this is sm_80");
  setting.sm = 90;
  setting.simulated = true;
  EXPECT_EQ(setting_problem(contract, "sample", setting), "it is about sm_90, and this is a simulated sm_90");
}

TEST(Contract, that_was_derived_may_name_several_versions_and_says_so) {
  json document = json::parse(contract_text(sample_contract()));
  EXPECT_FALSE(document.contains("derived"));
  document["derived"] = "from a manual";
  document["plans"][0]["libraries"]["cublaslt"] = {"13.1.0", "13.2.0"};
  const Contract contract = parse_contract(document.dump(), "x");
  EXPECT_EQ(json::parse(contract_text(contract)), document);
  ContractSetting setting = setting_of(sample_report());
  for (const char* version : {"13.1.0", "13.2.0"}) {
    setting.libraries[0].second = version;
    EXPECT_EQ(setting_problem(contract, "sample", setting), "") << version;
  }
  setting.libraries[0].second = "13.3.0";
  EXPECT_EQ(setting_problem(contract, "sample", setting), "it is about cublaslt 13.1.0 or 13.2.0, and here is 13.3.0");
  EXPECT_EQ(check_contract(contract, sample_report(), {}).at("derived"), "from a manual");
  EXPECT_FALSE(check_contract(sample_contract(), sample_report(), {}).contains("derived"));
}

TEST(Contract, is_about_plans_by_name) {
  const Contract contract = sample_contract();
  EXPECT_EQ(plan_problem(contract, "sample"), "");
  EXPECT_EQ(plan_problem(contract, "quick+sample"), "");
  EXPECT_EQ(plan_problem(contract, "samples"), "it promises nothing about the plan samples, only about sample");
  const json joined = sample_report("sample+quick");
  const Contract both = contract_of(std::array{&joined});
  EXPECT_EQ(plan_problem(both, "quick+other+sample"), "");
  EXPECT_NE(plan_problem(both, "quick"), "");
}

TEST(Contract, needs_reports_of_one_device_that_ran_something) {
  const json report = sample_report();
  json other = report, none = report, empty = report;
  other["machine"]["device"]["sm"] = 80;
  none["machine"]["device"] = nullptr;
  empty["cases"] = json::array();
  EXPECT_THROW((void)contract_of(std::array{&report, &std::as_const(other)}), core::IoError);
  EXPECT_THROW((void)contract_of(std::array{&std::as_const(none)}), core::IoError);
  EXPECT_THROW((void)contract_of(std::array{&std::as_const(empty)}), core::IoError);
  other.erase("machine");
  EXPECT_THROW((void)contract_of(std::array{&std::as_const(other)}), core::IoError);
}

}  // namespace
}  // namespace numcheck::report
