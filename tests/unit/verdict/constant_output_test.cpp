// A result that is expected to be one number everywhere proves little, even if it is right: inconclusive.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/buffer.hpp"
#include "core/hash.hpp"
#include "op/field.hpp"
#include "prepare/grouping.hpp"
#include "run/pipeline.hpp"

namespace numcheck::run {
namespace {

/// y = x, n numbers; before that z = 0, zeros numbers, if there are any.
struct MoveParams {
  std::int64_t n = 4;
  std::int64_t zeros = 0;
  template <class V>
  void describe(V& v) {
    v.integer("n", "n", n, {.minimum = 1, .maximum = 1 << 20, .doc = "numbers"});
    v.integer("zeros", "z", zeros, {.minimum = 0, .maximum = 1 << 20, .doc = "zeros in a first output"});
  }
};

std::vector<op::Port> move_ports(const op::Params& values, const op::Mode&) {
  const auto p = op::from_params<MoveParams>(values);
  op::Port x{.name = "x", .role = op::Role::input, .rows = 1, .cols = p.n};
  x.ld = x.batch_stride = p.n;
  op::Port y = x;
  y.name = "y";
  y.role = op::Role::output;
  if (p.zeros == 0) {
    return {x, y};
  }
  op::Port z = y;
  z.name = "z";
  z.cols = z.ld = z.batch_stride = p.zeros;
  return {x, z, y};
}

constexpr std::array<std::string_view, 1> kModes = {"fp32"};

const op::Op& move_op() {
  static const op::Op op{
      .name = "move",
      .summary = "y = x",
      .formula = "y = x",
      .source = "none",
      .fields = &op::fields_of<MoveParams>,
      .modes = kModes,
      .ports = &move_ports,
      .check = [](const op::Params&, const op::Mode&) { return std::vector<std::string>{}; },
      .exact_plan = [](const op::Params&, const op::Mode&) { return op::ExactPlan{.max_second = 3}; },
      .flops = [](const op::Params&) { return 1.0; },
      .reduces_along_rows = [](const op::Params&, std::string_view) { return false; },
  };
  return op;
}

op::Values move_values(const op::ReferenceRequest& request) {
  const op::Operand& x = request.inputs.at(0);
  core::Buffer<double> y(static_cast<std::size_t>(x.cols));
  std::copy_n(x.data, y.size(), y.data());
  op::Values values;
  const auto p = op::from_params<MoveParams>(*request.params);
  if (p.zeros > 0) {
    core::Buffer<double> z(static_cast<std::size_t>(p.zeros));
    std::ranges::fill(z.span(), 0.0);
    values.outputs.push_back({"z", std::move(z)});
    values.outputs.back().may_vanish = true;
  }
  values.outputs.push_back({"y", std::move(y)});
  return values;
}

op::Yardsticks move_yardsticks(const op::ReferenceRequest& request) {
  const op::Operand& x = request.inputs.at(0);
  core::Buffer<float> magnitude(static_cast<std::size_t>(x.cols));
  core::Buffer<float> second(magnitude.size());
  for (std::size_t i = 0; i < magnitude.size(); ++i) {
    magnitude[i] = static_cast<float>(std::fabs(x.data[i]));
    second[i] = magnitude[i] * magnitude[i];
  }
  op::Yardsticks yardsticks;
  const auto p = op::from_params<MoveParams>(*request.params);
  if (p.zeros > 0) {
    core::Buffer<float> none(static_cast<std::size_t>(p.zeros)), neither(static_cast<std::size_t>(p.zeros));
    std::ranges::fill(none.span(), 0.0F);
    std::ranges::fill(neither.span(), 0.0F);
    yardsticks.outputs.push_back({"z", std::move(none), std::move(neither)});
  }
  yardsticks.outputs.push_back({"y", std::move(magnitude), std::move(second)});
  return yardsticks;
}

std::vector<prepare::CatalogRow> catalog() {
  prepare::CatalogRow row;
  row.op = &move_op();
  row.reference = {.values = &move_values, .yardsticks = &move_yardsticks, .version = "move/1"};
  row.error_model = [](const model::ModelRequest&, std::string_view) {
    model::ErrorModel model;
    model.exact = true;
    model.source = "a move is exact";
    return model;
  };
  row.backends = {{.name = "sim"}};
  return {row};
}

/// Copies x; with the tag "wrong" one bit is lost, with "racy" y differs from run to run.
class Mover final : public worker::Executor {
 public:
  const machine::Device& device() const override { return device_; }
  std::vector<std::pair<std::string, std::string>> libraries() const override { return {}; }

  worker::Outcome execute(const plan::Case& c, std::span<const worker::HostPort> ports, const worker::ExecuteOptions&,
                          const worker::RunSink& sink) override {
    const auto y = ports.back().bytes;
    std::memcpy(y.data(), ports[0].bytes.data(), ports[0].bytes.size());
    if (c.tags == std::vector<std::string>{"wrong"}) {
      y[0] ^= std::byte{1};
    }
    worker::RunReport report;
    report.backend = "sim";
    report.label = "memcpy";
    report.guards_intact = true;
    if (ports.size() > 2) {
      std::ranges::fill(ports[1].bytes, std::byte{0});
      report.outputs.push_back({"z", core::digest_of(std::span<const std::byte>(ports[1].bytes))});
    }
    report.outputs.push_back(
        {"y", core::digest_of(std::span<const std::byte>(y)), c.tags != std::vector<std::string>{"racy"}});
    sink(report);
    return {};
  }

 private:
  machine::Device device_{.name = "mover", .sm = 90, .simulated = true};
};

struct Ending {
  verdict::Status status;
  std::string reason;
};

Ending ending_of(std::int64_t n, const data::Distribution& x, std::vector<std::string> tags = {},
                 std::int64_t zeros = 0) {
  plan::Case c;
  c.op = &move_op();
  c.params = op::to_params(MoveParams{.n = n, .zeros = zeros});
  c.mode = op::find_mode("fp32");
  c.backend = "auto";
  c.inputs.common = x;
  c.tags = std::move(tags);
  plan::identify(c);
  PipelineOptions options;
  options.workers.in_process = true;
  options.workers.factory = [](const machine::DeviceChoice&) { return std::make_unique<Mover>(); };
  options.memory_bytes = std::uint64_t{1} << 30;
  const std::vector<prepare::CatalogRow> rows = catalog();
  const PipelineResult result = run_cases({c}, rows, options);
  return {result.cases.at(0).status, result.cases.at(0).record.value("reason", "")};
}

data::Distribution constant(double value) {
  data::Distribution d = data::make_distribution("constant");
  d.params.at(0) = value;
  return d;
}

TEST(ConstantOutput, is_inconclusive_although_it_is_right) {
  const Ending ending = ending_of(500, constant(0.1));
  EXPECT_EQ(ending.status, verdict::Status::inconclusive);
  EXPECT_EQ(ending.reason, "y: every output is expected to be the same number, so passing proves little");
  EXPECT_EQ(ending_of(500, constant(0)).status, verdict::Status::inconclusive) << "zeros are one number too";
  EXPECT_EQ(ending_of(2, constant(0.1)).status, verdict::Status::inconclusive);
}

TEST(ConstantOutput, fails_where_it_is_wrong) {
  const Ending ending = ending_of(500, constant(0.1), {"wrong"});
  EXPECT_EQ(ending.status, verdict::Status::fail);
  EXPECT_NE(ending.reason.find("exact"), std::string::npos) << ending.reason;
}

TEST(ConstantOutput, that_may_vanish_is_right_if_another_output_proves_that_the_op_was_computed) {
  EXPECT_EQ(ending_of(500, data::make_distribution("normal"), {}, 300).status, verdict::Status::pass);
  EXPECT_EQ(ending_of(500, data::make_distribution("normal"), {"wrong"}, 300).status, verdict::Status::fail);
  EXPECT_EQ(ending_of(500, constant(0), {}, 300).status, verdict::Status::inconclusive);
}

TEST(Determinism, fails_for_the_output_that_differs) {
  const Ending ending = ending_of(500, data::make_distribution("normal"), {"racy"}, 300);
  EXPECT_EQ(ending.status, verdict::Status::fail);
  EXPECT_EQ(ending.reason, "y: G0 determinism: repeated runs give different bits");  // and not z, which comes first
}

TEST(ConstantOutput, a_single_number_is_not_a_constant) {
  EXPECT_EQ(ending_of(1, constant(0.1)).status, verdict::Status::pass);
}

TEST(ConstantOutput, numbers_that_differ_pass) {
  EXPECT_EQ(ending_of(500, data::make_distribution("normal")).status, verdict::Status::pass);
}

}  // namespace
}  // namespace numcheck::run
