// The coordinator's pipeline against a made-up op and devices that misbehave on request.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/hash.hpp"
#include "op/field.hpp"
#include "run/group.hpp"
#include "run/pipeline.hpp"

namespace numcheck::run {
namespace {

/// y = x, n numbers; `pad` is a storage-only parameter.
struct CopyParams {
  std::int64_t n = 4;
  std::int64_t pad = 0;
  template <class V>
  void describe(V& v) {
    v.integer("n", "n", n, {.minimum = 0, .maximum = 1 << 20, .doc = "numbers"});
    v.integer("pad", "pad", pad, {.minimum = 0, .maximum = 64, .doc = "padding", .storage_only = true});
  }
};

std::vector<op::Port> copy_ports(const op::Params& values, const op::Mode& mode) {
  const auto p = op::from_params<CopyParams>(values);
  op::Port x{.name = "x", .role = op::Role::input, .dtype = mode.first, .rows = 1, .cols = p.n};
  x.ld = p.n + p.pad;
  x.batch_stride = x.ld;
  op::Port y = x;
  y.name = "y";
  y.role = op::Role::output;
  return {x, y};
}

const op::Op& copy_op() {
  static constexpr std::array<std::string_view, 2> kModes = {"fp32", "bf16"};
  static const op::Op op{
      .name = "copy",
      .summary = "y = x",
      .formula = "y = x",
      .source = "none",
      .fields = &op::fields_of<CopyParams>,
      .modes = kModes,
      .ports = &copy_ports,
      .check = [](const op::Params&, const op::Mode&) { return std::vector<std::string>{}; },
      .exact_plan = [](const op::Params&, const op::Mode&) { return op::ExactPlan{.max_second = 3}; },
      .flops = [](const op::Params& p) { return static_cast<double>(std::get<std::int64_t>(p[0])); },
      .reduces_along_rows = [](const op::Params&, std::string_view) { return false; },
  };
  return op;
}

op::Values copy_values(const op::ReferenceRequest& request) {
  const op::Operand& x = request.inputs.at(0);
  op::Values values;
  const std::size_t n = request.sample.all() ? static_cast<std::size_t>(x.cols) : request.sample.indices.size();
  core::Buffer<double> y(n);
  for (std::size_t i = 0; i < n; ++i) {
    y[i] = x.data[request.sample.all() ? i : static_cast<std::size_t>(request.sample.indices[i])] * x.scale;
  }
  values.outputs.push_back({"y", std::move(y)});
  return values;
}

op::Yardsticks copy_yardsticks(const op::ReferenceRequest& request) {
  const op::Values values = copy_values(request);
  const std::size_t n = values.outputs[0].value.size();
  core::Buffer<float> magnitude(n);
  core::Buffer<float> second(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<float>(values.outputs[0].value[i]);
    magnitude[i] = std::fabs(x);
    second[i] = x * x;
  }
  op::Yardsticks yardsticks;
  yardsticks.outputs.push_back({"y", std::move(magnitude), std::move(second)});
  return yardsticks;
}

tolerance::ErrorModel copy_model(const tolerance::ModelRequest& request, std::string_view) {
  tolerance::ErrorModel model;
  model.exact = true;
  model.output = request.mode->output;
  model.source = "copy is exact";
  return model;
}

std::vector<CatalogRow> copy_catalog() {
  CatalogRow row;
  row.op = &copy_op();
  row.reference = {.values = &copy_values, .yardsticks = &copy_yardsticks, .version = "copy/1"};
  row.error_model = &copy_model;
  row.backends = {"sim"};
  return {row};
}

/// What the device does with cases that carry this tag.
class CopyDevice final : public Executor {
 public:
  const machine::Device& device() const override { return device_; }
  std::vector<std::pair<std::string, std::string>> libraries() const override { return {}; }

  Outcome execute(const plan::Case& c, std::span<const HostPort> ports, const ExecuteOptions&,
                  const RunSink& sink) override {
    const std::string behaviour = c.tags.empty() ? "" : c.tags.front();
    if (behaviour == "unsupported") {
      return {.kind = Outcome::Kind::unsupported, .reason = "this device cannot copy"};
    }
    if (behaviour == "throws") {
      throw std::runtime_error("the device is on fire");
    }
    std::memcpy(ports[1].bytes.data(), ports[0].bytes.data(), ports[0].bytes.size());
    if (behaviour == "wrong") {
      ports[1].bytes[0] ^= std::byte{1};
    }
    RunReport report;
    report.label = "memcpy";
    report.guards_intact = behaviour != "out_of_bounds";
    report.deterministic = behaviour != "racy";
    report.outputs.push_back({"y", core::digest_of(std::span<const std::byte>(ports[1].bytes))});
    sink(report);
    return {};
  }

 private:
  machine::Device device_{.name = "copier", .sm = 90, .simulated = true};
};

plan::Case make_case(std::int64_t n, std::string_view mode, std::vector<std::string> tags = {},
                     std::string_view distribution = "normal") {
  plan::Case c;
  c.op = &copy_op();
  c.params = op::to_params(CopyParams{.n = n});
  c.mode = op::find_mode(mode);
  c.backend = "auto";
  c.seed = 7;
  c.inputs.common = data::make_distribution(distribution);
  c.tags = std::move(tags);
  plan::identify(c);
  if (!c.tags.empty()) {
    c.id += "#" + c.tags.front();
    c.digest = core::digest_of(c.id);
  }
  return c;
}

PipelineOptions in_process() {
  PipelineOptions options;
  options.workers.in_process = true;
  options.workers.factory = [](const machine::DeviceChoice&) { return std::make_unique<CopyDevice>(); };
  options.memory_bytes = std::uint64_t{1} << 30;
  options.reproduce_prefix = "te-numcheck run plan.json";
  return options;
}

report::Status status_of(const plan::Case& c) {
  const std::vector<CatalogRow> catalog = copy_catalog();
  return run_cases({c}, catalog, in_process()).cases.at(0).status;
}

TEST(Pipeline, CleanCopyPasses) {
  EXPECT_EQ(status_of(make_case(5000, "fp32")), report::Status::pass);
  EXPECT_EQ(status_of(make_case(5000, "bf16")), report::Status::pass);
}

TEST(Pipeline, OneFlippedBitFails) {
  EXPECT_EQ(status_of(make_case(5000, "fp32", {"wrong"})), report::Status::fail);
}

TEST(Pipeline, BrokenGuardAndRaceFail) {
  EXPECT_EQ(status_of(make_case(5000, "fp32", {"out_of_bounds"})), report::Status::fail);
  EXPECT_EQ(status_of(make_case(5000, "fp32", {"racy"})), report::Status::fail);
}

TEST(Pipeline, UnsupportedKeepsItsSentence) {
  const std::vector<CatalogRow> catalog = copy_catalog();
  const PipelineResult result = run_cases({make_case(50, "fp32", {"unsupported"})}, catalog, in_process());
  EXPECT_EQ(result.cases[0].status, report::Status::unsupported);
  EXPECT_EQ(result.cases[0].record.at("reason"), "this device cannot copy");
}

TEST(Pipeline, AnExceptionCostsOneCase) {
  const std::vector<CatalogRow> catalog = copy_catalog();
  const PipelineResult result =
      run_cases({make_case(50, "fp32", {"throws"}), make_case(5000, "fp32")}, catalog, in_process());
  EXPECT_EQ(result.cases[0].status, report::Status::error);
  EXPECT_NE(result.cases[0].record.at("reason").get<std::string>().find("on fire"), std::string::npos);
  EXPECT_EQ(result.cases[1].status, report::Status::pass);
}

TEST(Pipeline, CaseThatCannotFitIsSkippedWithTheBytesItNeeds) {
  const std::vector<CatalogRow> catalog = copy_catalog();
  PipelineOptions options = in_process();
  options.memory_bytes = 100'000;
  const PipelineResult result = run_cases({make_case(100'000, "fp32"), make_case(100, "fp32")}, catalog, options);
  EXPECT_EQ(result.cases[0].status, report::Status::skipped);
  EXPECT_NE(result.cases[0].record.at("reason").get<std::string>().find("--memory allows"), std::string::npos);
  EXPECT_EQ(result.cases[1].status, report::Status::pass);
}

TEST(Pipeline, KnownFailureAndUnexpectedPass) {
  plan::Case known = make_case(5000, "fp32", {"wrong"});
  known.xfail = plan::XFail{.reason = "tracked as 12", .expires = ""};
  EXPECT_EQ(status_of(known), report::Status::xfail);
  known.xfail->expires = "2001-01-01";
  EXPECT_EQ(status_of(known), report::Status::fail);
  plan::Case passes = make_case(5000, "fp32");
  passes.xfail = plan::XFail{.reason = "tracked as 12", .expires = ""};
  EXPECT_EQ(status_of(passes), report::Status::xpass);
}

TEST(Pipeline, StopsAfterTheFailuresThatAreAllowed) {
  const std::vector<CatalogRow> catalog = copy_catalog();
  std::vector<plan::Case> cases = {make_case(5000, "fp32", {"wrong"})};
  for (std::int64_t n = 1; n <= 400; ++n) {
    cases.push_back(make_case(n, "fp32"));
  }
  PipelineOptions options = in_process();
  options.stop_after_failures = 1;
  const PipelineResult result = run_cases(cases, catalog, options);
  EXPECT_EQ(result.cases.front().status, report::Status::fail);
  EXPECT_EQ(result.cases.back().status, report::Status::skipped);
  EXPECT_FALSE(result.interrupted);
}

TEST(Pipeline, ResumedCasesAreTakenOverUntouched) {
  const std::vector<CatalogRow> catalog = copy_catalog();
  const std::vector<plan::Case> cases = {make_case(5000, "fp32", {"wrong"}), make_case(60, "fp32")};
  const nlohmann::json stored = {{"status", "pass"}, {"marker", 42}};
  const PipelineResult result = run_cases(cases, catalog, in_process(), {{cases[0].digest, stored}});
  EXPECT_EQ(result.cases[0].record, stored);
  EXPECT_EQ(result.cases[1].status, report::Status::pass);
}

TEST(Grouping, SharesInputsAcrossModesAndStorageButNotShapes) {
  plan::Case padded = make_case(16, "fp32");
  padded.params = op::to_params(CopyParams{.n = 16, .pad = 8});
  const std::vector<plan::Case> cases = {make_case(16, "fp32"), make_case(16, "bf16"), padded, make_case(17, "fp32"),
                                         make_case(16, "fp32", {}, "positive")};
  const std::vector<GroupPlan> groups = group_cases(cases, {0, 1, 2, 3, 4});
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].cases, (std::vector<std::size_t>{0, 1, 2}));
}

}  // namespace
}  // namespace numcheck::run
