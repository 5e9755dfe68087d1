// What every op of the catalog must have.
#include "catalog.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "explain_op.hpp"
#include "op/ops.hpp"

namespace numcheck::app {
namespace {

/// Parameters that the op takes in the mode, if there is one.
op::Params thirty_two_of_everything(const op::Op& op, const op::Mode* mode = nullptr) {
  op::Params params;
  for (const op::Field& field : op.fields()) {
    const bool is_fp4 = mode != nullptr && mode->first == core::Dtype::fp4_e2m1;
    params.push_back(field.required ? op::Value(std::int64_t{32}) : field.fallback);
    if (is_fp4 && (field.name == "scaling" || field.name == "trans_b")) {
      params.back() = field.name == "scaling" ? op::Value(std::string("nvfp4")) : op::Value(true);
    }
  }
  return params;
}

TEST(Catalog, every_op_has_docs_reference_model_and_backends) {
  ASSERT_FALSE(catalog().empty());
  for (const prepare::CatalogRow& row : catalog()) {
    ASSERT_NE(row.op, nullptr);
    EXPECT_FALSE(row.op->summary.empty()) << row.op->name;
    EXPECT_FALSE(row.op->formula.empty()) << row.op->name;
    EXPECT_FALSE(row.op->source.empty()) << row.op->name;
    EXPECT_NE(row.reference.values, nullptr) << row.op->name;
    EXPECT_FALSE(row.reference.version.empty()) << row.op->name;
    EXPECT_NE(row.error_model, nullptr) << row.op->name;
    EXPECT_EQ(std::ranges::count(row.backends, "sim", &prepare::CatalogBackend::name), 1) << "CI has no other device";
    for (const op::Field& field : row.op->fields()) {
      EXPECT_FALSE(field.doc.empty()) << row.op->name << " " << field.name;
    }
  }
}

TEST(Catalog, every_mode_of_every_op_exists_and_has_a_model_of_every_output) {
  for (const prepare::CatalogRow& row : catalog()) {
    for (const std::string_view name : row.op->modes) {
      const op::Mode* mode = op::find_mode(name);
      ASSERT_NE(mode, nullptr) << name;
      const op::Params params = thirty_two_of_everything(*row.op, mode);
      ASSERT_TRUE(row.op->check(params, *mode).empty()) << name;
      for (const op::Port& port : row.op->ports(params, *mode)) {
        EXPECT_FALSE(port.doc.empty()) << port.name;
        if (port.role == op::Role::output) {
          const model::ErrorModel model = row.error_model({.params = &params, .mode = mode, .sm = 100}, port.name);
          EXPECT_FALSE(model.source.empty()) << name;
          EXPECT_GT(model.bound_magnitude + model.bound_value, 0) << name;
        }
      }
    }
  }
}

/// Verdicts of products rest on it.
TEST(Catalog, backends_say_how_they_multiply) {
  using model::MatrixArithmetic;
  const prepare::CatalogRow& gemm = *prepare::find_row(catalog(), "gemm");
  EXPECT_EQ(prepare::arithmetic_of(gemm, "cublaslt"), MatrixArithmetic::by_mode_alpha_first);
  EXPECT_EQ(prepare::arithmetic_of(gemm, "transformer_engine"), MatrixArithmetic::by_mode_alpha_first);
  EXPECT_EQ(prepare::arithmetic_of(gemm, "cuda"), MatrixArithmetic::fp32_chain);
  EXPECT_EQ(prepare::arithmetic_of(gemm, "sim"), MatrixArithmetic::by_mode);
  EXPECT_THROW(static_cast<void>(prepare::arithmetic_of(gemm, "cudnn")), core::InternalError);
  const prepare::CatalogRow& grouped = *prepare::find_row(catalog(), "grouped_gemm");
  EXPECT_EQ(prepare::arithmetic_of(grouped, "cublas"), MatrixArithmetic::by_mode_alpha_first);
  EXPECT_EQ(prepare::arithmetic_of(grouped, "transformer_engine"), MatrixArithmetic::by_mode_alpha_first);
  EXPECT_EQ(prepare::arithmetic_of(grouped, "cuda"), MatrixArithmetic::fp32_chain);
  EXPECT_EQ(prepare::arithmetic_of(grouped, "sim"), MatrixArithmetic::by_mode);
  const prepare::CatalogRow& attention = *prepare::find_row(catalog(), "attention_fwd");
  EXPECT_EQ(prepare::arithmetic_of(attention, "cuda"), MatrixArithmetic::fp32_chain);
  EXPECT_EQ(prepare::arithmetic_of(attention, "sim"), MatrixArithmetic::by_mode);
  for (const prepare::CatalogRow& row : catalog()) {
    const bool expected_above =
        row.op == gemm.op || row.op == grouped.op || row.op->name == "attention_fwd" || row.op->name == "attention_bwd";
    EXPECT_EQ(row.op->multiplies_matrices, expected_above) << row.op->name << " needs an expectation above";
  }
}

TEST(Catalog, names_are_unique) {
  std::set<std::string_view> names;
  for (const kernels::FaultInfo& fault : faults()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_FALSE(fault.doc.empty()) << fault.name;
  }
  for (const BackendInfo& backend : backends()) {
    EXPECT_TRUE(names.insert(backend.name).second) << backend.name;
  }
}

TEST(Catalog, the_backend_table_names_every_backend_that_plans_may_name) {
  const std::vector<BackendInfo> table = backends();
  for (const std::string_view name : vocabulary().backends) {
    EXPECT_TRUE(std::ranges::find(table, name, &BackendInfo::name) != table.end()) << name;
  }
}

bool has_exact_leg(const op::Op& op, std::string_view mode) {
  const op::Mode* found = op::find_mode(mode);
  return op.exact_plan(thirty_two_of_everything(op, found), *found).reason.empty();
}

TEST(Catalog, quick_plan_has_every_op_and_every_mode_of_products_on_both_legs) {
  const plan::Plan plan = plan::load_plan(TE_NUMCHECK_SOURCE_DIR "/configs/plans/quick.json", vocabulary(), {});
  std::set<std::string> covered;
  for (const plan::Case& c : plan.cases) {
    covered.insert(std::string(c.op->name));
    covered.insert(std::string(c.op->name) + " " + std::string(c.mode->name) +
                   (c.inputs.exact_leg() ? " exact" : " random"));
  }
  for (const prepare::CatalogRow& row : catalog()) {
    EXPECT_TRUE(covered.contains(std::string(row.op->name))) << row.op->name;
    if (!row.op->multiplies_matrices) {
      continue;  // they compute in FP32 whatever the mode stores
    }
    for (const std::string_view mode : row.op->modes) {
      for (const char* leg : {" exact", " random"}) {
        if (leg == std::string(" exact") && !has_exact_leg(*row.op, mode)) {
          continue;
        }
        const std::string wanted = std::string(row.op->name) + " " + std::string(mode) + leg;
        EXPECT_TRUE(covered.contains(wanted)) << wanted;
      }
    }
  }
}

/// A row for every op that the bindings and references are declared for.
TEST(Catalog, every_op_has_a_row) {
  std::vector<std::string_view> rows;
  std::ranges::transform(catalog(), std::back_inserter(rows),
                         [](const prepare::CatalogRow& row) { return row.op->name; });
#define NAME_OF(name) #name,
  const std::vector<std::string_view> names = {NUMCHECK_OPS(NAME_OF)};
#undef NAME_OF
  EXPECT_EQ(rows, names);
}

/// Ports that the op promises, with as many elements, and no others.
TEST(Catalog, every_reference_gives_the_outputs_of_its_op) {
  for (const prepare::CatalogRow& row : catalog()) {
    const op::Params params = thirty_two_of_everything(*row.op);
    const op::Mode& mode = *op::find_mode(row.op->modes.front());
    const std::vector<op::Port> ports = row.op->ports(params, mode);
    std::vector<std::vector<double>> data;
    op::ReferenceRequest request{&params, {}, {}};
    for (const bool generated : {true, false}) {
      for (const op::Port& port : ports) {
        if (port.role != op::Role::input || port.is_generated() != generated) {
          continue;
        }
        std::vector<double>& values = data.emplace_back(static_cast<std::size_t>(port.elements()));
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<double>(i % 7) - 3.25;
        }
        if (!generated) {
          ASSERT_NE(row.reference.derive, nullptr) << row.op->name;
          row.reference.derive({&params, request.inputs, &port}, values);
        }
        request.inputs.push_back({port.name, values.data(), port.batch, port.rows, port.cols, 1.0, port.dtype});
      }
    }
    const op::Values values = row.reference.values(request);
    for (const op::Port& port : ports) {
      if (port.role == op::Role::output) {
        const auto found = std::ranges::find(values.outputs, port.name, &op::OutputValues::port);
        ASSERT_NE(found, values.outputs.end()) << row.op->name << " " << port.name;
        EXPECT_EQ(found->value.size(), static_cast<std::size_t>(port.elements())) << row.op->name << " " << port.name;
        const model::ErrorModel model = row.error_model({.params = &params, .mode = &mode}, port.name);
        const bool has_model = !row.reference.tracked() || found->bit_exact || !found->magnitude.empty() ||
                               static_cast<bool>(model.element_errors);
        EXPECT_TRUE(has_model) << row.op->name << " " << port.name;
      }
    }
  }
}

TEST(ExplainOp, shows_every_parameter_and_mode) {
  for (const prepare::CatalogRow& row : catalog()) {
    const std::string text = explain_op(row, false);
    for (const op::Field& field : row.op->fields()) {
      EXPECT_NE(text.find("\n" + std::string(field.name) + " "), std::string::npos) << field.name;
    }
    for (const std::string_view mode : row.op->modes) {
      EXPECT_NE(text.find("\n" + std::string(mode) + " "), std::string::npos) << mode;
    }
  }
}

}  // namespace
}  // namespace numcheck::app
