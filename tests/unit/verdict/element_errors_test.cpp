// Models that compute the errors of their elements: what they say is what an output is judged by.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "core/hash.hpp"
#include "op/field.hpp"
#include "run/pipeline.hpp"

namespace numcheck::run {
namespace {

constexpr std::size_t kColumns = 64;

/// y = x, rows of 64 numbers, and the largest magnitude of y. The error that a row may have is its number times 2^-10: a
/// fact of the row.
struct RowsParams {
  std::int64_t rows = 40;
  template <class V>
  void describe(V& v) {
    v.integer("rows", "rows", rows, {.minimum = 1, .maximum = 1000, .doc = "rows"});
  }
};

constexpr std::array<std::string_view, 1> kModes = {"fp32"};

const op::Op& rows_op() {
  static const op::Op op{
      .name = "rows",
      .summary = "y = x",
      .formula = "y = x",
      .source = "none",
      .fields = &op::fields_of<RowsParams>,
      .modes = kModes,
      .ports =
          [](const op::Params& values, const op::Mode&) {
            const std::int64_t rows = op::from_params<RowsParams>(values).rows;
            op::Port largest = op::dense_port("y_amax", op::Role::amax, core::Dtype::fp32, 1, 1, "");
            largest.of = "y";
            return std::vector{op::dense_port("x", op::Role::input, core::Dtype::fp32, rows, kColumns, ""),
                               op::dense_port("y", op::Role::output, core::Dtype::fp32, rows, kColumns, ""), largest};
          },
      .check = [](const op::Params&, const op::Mode&) { return std::vector<std::string>{}; },
      .exact_plan = [](const op::Params&, const op::Mode&) { return op::no_exact_leg("it errs"); },
      .flops = [](const op::Params&) { return 1.0; },
  };
  return op;
}

op::Values values(const op::ReferenceRequest& request) {
  const op::Operand& x = request.inputs.at(0);
  op::Values values;
  op::OutputValues& y = values.outputs.emplace_back();
  y.port = "y";
  y.value = core::Buffer<double>(x.elements());
  std::copy_n(x.data, x.elements(), y.value.data());
  y.magnitude = core::Buffer<float>(x.elements());  // nothing may err, if these were used
  y.deviation = core::Buffer<float>(x.elements());
  std::ranges::fill(y.magnitude.span(), 0.0F);
  std::ranges::fill(y.deviation.span(), 0.0F);
  core::Buffer<float>& fact = y.row_facts.emplace_back(static_cast<std::size_t>(x.rows));
  for (std::size_t i = 0; i < fact.size(); ++i) {
    fact[i] = static_cast<float>(i) * 0x1p-10F;
  }
  return values;
}

model::ErrorModel error_model(const model::ModelRequest& request, std::string_view) {
  model::ErrorModel model;
  model.output = request.output;
  model.bound_magnitude = model.var_second = 1;
  model.slope_slack = 1;
  model.source = "rows";
  model.element_errors = [](const op::Values& values, std::span<float> bound, std::span<float> deviation) {
    const core::Buffer<float>& fact = values.outputs.at(0).row_facts.at(0);
    for (std::size_t n = 0; n < bound.size(); ++n) {
      bound[n] = deviation[n] = fact[n / kColumns];
    }
  };
  return model;
}

/// Errors of a device: in element 3 of one row; and in the largest magnitude, in units of what the row of the largest
/// element may err.
struct Errors {
  std::size_t row = 0;
  float of_element = 0;
  float of_largest = 0;
};

/// Copies x, and errs.
class Adder final : public worker::Executor {
 public:
  explicit Adder(const Errors& errors) : errors_(errors) {}
  const machine::Device& device() const override { return device_; }
  std::vector<std::pair<std::string, std::string>> libraries() const override { return {}; }

  worker::Outcome execute(const plan::Case&, std::span<const worker::HostPort> ports, const worker::ExecuteOptions&,
                          const worker::RunSink& sink) override {
    std::memcpy(ports[1].bytes.data(), ports[0].bytes.data(), ports[0].bytes.size());
    float* y = reinterpret_cast<float*>(ports[1].bytes.data());
    const std::span<const float> x(y, ports[1].bytes.size() / sizeof *y);
    const auto largest = std::ranges::max_element(x, {}, [](float value) { return std::fabs(value); });
    const auto row = static_cast<float>((largest - x.begin()) / kColumns);
    EXPECT_TRUE(row > 0 && row < 20) << "rows from 20 on may err more than twice as much";
    const float amax = std::fabs(*largest) + errors_.of_largest * row * 0x1p-10F;
    std::memcpy(ports[2].bytes.data(), &amax, sizeof amax);
    y[errors_.row * kColumns + 3] += errors_.of_element;
    worker::RunReport report;
    report.backend = "sim";
    report.label = "copy";
    report.guards_intact = true;
    report.outputs.push_back({"y", core::digest_of(std::span<const std::byte>(ports[1].bytes))});
    report.outputs.push_back({"y_amax", core::digest_of(std::span<const std::byte>(ports[2].bytes))});
    sink(report);
    return {};
  }

 private:
  Errors errors_;
  machine::Device device_{.name = "adder", .sm = 90, .simulated = true};
};

verdict::Status status_with(const Errors& errors) {
  plan::Case c;
  c.op = &rows_op();
  c.params = op::to_params(RowsParams{});
  c.mode = op::find_mode("fp32");
  c.backend = "auto";
  c.inputs.common = data::make_distribution("normal");
  plan::identify(c);
  PipelineOptions options;
  options.workers.in_process = true;
  options.workers.factory = [errors](const machine::DeviceChoice&) { return std::make_unique<Adder>(errors); };
  options.memory_bytes = std::uint64_t{1} << 30;
  prepare::CatalogRow entry;
  entry.op = &rows_op();
  entry.reference = {.values = &values, .version = "rows/1"};
  entry.error_model = &error_model;
  entry.backends = {{.name = "sim"}};
  const std::array rows = {entry};
  return run_cases({c}, rows, options).cases.at(0).status;
}

TEST(ElementErrors, judge_each_element) {
  EXPECT_EQ(status_with({}), verdict::Status::pass);
  EXPECT_EQ(status_with({5, 0x1p-8F}), verdict::Status::pass) << "5 / 1024 is allowed there";
  EXPECT_EQ(status_with({5, 0x1p-7F}), verdict::Status::fail);
  EXPECT_EQ(status_with({9, 0x1p-7F}), verdict::Status::pass);
  EXPECT_EQ(status_with({1, 0x1p-8F}), verdict::Status::fail);
}

TEST(ElementErrors, judge_the_largest_magnitude_by_elements_that_may_become_it) {
  EXPECT_EQ(status_with({.of_largest = 0.9F}), verdict::Status::pass);
  EXPECT_EQ(status_with({.of_largest = -0.9F}), verdict::Status::pass);
  EXPECT_EQ(status_with({.of_largest = 2}), verdict::Status::fail) << "rows of smaller numbers may err as much";
  EXPECT_EQ(status_with({.of_largest = -2}), verdict::Status::fail);
}

}  // namespace
}  // namespace numcheck::run
