// The published schema is the one that the binary emits.
#include <cstdio>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "catalog.hpp"
#include "op/gemm.hpp"
#include "report/report.hpp"
#include "support.hpp"

namespace numcheck::plan {
namespace {

using nlohmann::json;

TEST(PlanSchema, published_copy_is_the_emitted_one) {
  const std::string emitted = plan_schema(app::vocabulary()).dump(2) + "\n";
  if (const char* path = std::getenv("TE_NUMCHECK_WRITE_SCHEMA")) {
    std::ofstream(path) << emitted;
  }
  EXPECT_TRUE(testing::read_repository_file("configs/schema/plan-1.schema.json") == emitted)
      << "regenerate it: te-numcheck schema plan > configs/schema/plan-1.schema.json";
}

TEST(PlanSchema, describes_every_field_mode_distribution_and_variable) {
  const json schema = plan_schema(testing::vocabulary());
  const json& definitions = schema.at("definitions");
  for (const op::Field& field : op::gemm().fields()) {
    EXPECT_TRUE(definitions.at("gemm_params").at("properties").contains(std::string(field.name))) << field.name;
  }
  const std::string text = schema.dump();
  for (const op::Mode& mode : op::all_modes()) {
    EXPECT_NE(text.find('"' + std::string(mode.name) + '"'), std::string::npos) << mode.name;
  }
  EXPECT_EQ(definitions.at("inputs").at("anyOf").size(), data::all_distributions().size());
  EXPECT_EQ(definitions.at("environment").at("properties").size(), settable_variables().size() + 1);
}

/// Properties without a description, as JSON pointers. What only repeats a property as a condition is not asked.
void find_undescribed(const json& node, const std::string& path, std::vector<std::string>& found, std::size_t& all) {
  for (const auto& [key, value] : node.items()) {
    const std::string here = path + "/" + key;
    if (node.is_object() && key == "properties") {
      for (const auto& [name, rule] : value.items()) {
        ++all;
        const std::string doc = rule.value("description", "");
        const bool has_unit = (!name.ends_with("_s") || doc.find("in s") != std::string::npos) &&
                              (!name.ends_with("_bytes") || doc.find("bytes") != std::string::npos);
        if (doc.empty() || !has_unit) {
          found.push_back(here + "/" + name);
        }
      }
    }
    if (value.is_structured() && key != "if" && key != "then" && key != "else" && key != "examples" &&
        key != "default") {
      find_undescribed(value, here, found, all);
    }
  }
}

TEST(Schemas, describe_every_property) {
  for (const json& schema : {plan_schema(app::vocabulary()), report::report_schema()}) {
    std::vector<std::string> found;
    std::size_t all = 0;
    find_undescribed(schema, "", found, all);
    EXPECT_GT(all, 200U);
    EXPECT_EQ(found, std::vector<std::string>()) << schema.at("title");
    EXPECT_TRUE(schema.contains("$id") && schema.contains("description")) << schema.at("title");
  }
}

TEST(PlanSchema, has_the_default_of_every_optional_parameter) {
  const json schema = plan_schema(app::vocabulary());
  for (const op::Op* op : app::vocabulary().ops) {
    for (const op::Field& field : op->fields()) {
      const json& rule =
          schema.at("definitions").at(std::string(op->name) + "_params").at("properties").at(std::string(field.name));
      EXPECT_EQ(rule.contains("default"), !field.required) << op->name << " " << field.name;
    }
  }
  const json& keys = schema.at("definitions").at("case").at("properties");
  EXPECT_EQ(keys.at("backend").at("default"), "auto");
}

TEST(PlanSchema, examples_are_plans) {
  for (const json& example : plan_schema(app::vocabulary()).at("examples")) {
    const Plan plan = parse_plan(example.dump(), "example.json", app::vocabulary(), {});
    EXPECT_FALSE(plan.cases.empty());
    EXPECT_TRUE(plan.warnings.empty());
  }
}

TEST(SettableVariables, are_named_one_by_one_and_change_numbers) {
  std::vector<std::string_view> names;
  for (const EnvironmentVariable& variable : settable_variables()) {
    EXPECT_FALSE(variable.doc.empty()) << variable.name;
    EXPECT_EQ(std::string(variable.name).find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"), std::string::npos);
    EXPECT_EQ(variable.name.find("LOG"), std::string_view::npos) << "logs write files and print on stdout";
    EXPECT_EQ(variable.name.find("FILE"), std::string_view::npos);
    EXPECT_EQ(variable.name.find("PATH"), std::string_view::npos);
    EXPECT_EQ(variable.name.find("INJECTION"), std::string_view::npos) << "loads code";
    EXPECT_EQ(std::ranges::find(names, variable.name), names.end());
    names.push_back(variable.name);
  }
  EXPECT_NE(std::ranges::find(names, "NVIDIA_TF32_OVERRIDE"), names.end());
}

}  // namespace
}  // namespace numcheck::plan
