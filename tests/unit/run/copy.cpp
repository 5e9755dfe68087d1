#include "copy.hpp"

#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/parallel.hpp"
#include "op/field.hpp"

namespace numcheck::run::copy {
namespace {

constexpr const char* kRefusal = "this device refuses to copy";

std::string behaviour_of(const plan::Case& c) {
  return c.tags.empty() ? "" : c.tags.front();
}

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
  std::this_thread::sleep_for(reference_delay.load());
  const op::Operand& x = request.inputs.at(0);
  core::parallel_for(x.cols > 1000 ? reference_steps.load() : 0,
                     [](std::size_t) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); });
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

model::ErrorModel copy_model(const model::ModelRequest& request, std::string_view) {
  model::ErrorModel model;
  model.exact = true;
  model.output = request.mode->output;
  model.source = "copy is exact";
  return model;
}

}  // namespace

std::vector<prepare::CatalogRow> copy_catalog() {
  prepare::CatalogRow row;
  row.op = &copy_op();
  row.reference = {.values = &copy_values, .yardsticks = &copy_yardsticks, .version = "copy/1"};
  row.error_model = &copy_model;
  row.backends = {{.name = "sim"}};
  return {row};
}

worker::Support CopyDevice::supports(const plan::Case& c, const worker::ExecuteOptions&) {
  const std::string behaviour = behaviour_of(c);
  if (behaviour == "support_throws") {
    throw core::EnvironmentError("libcopy.so is missing");
  }
  return {behaviour != "refused", behaviour == "refused" ? kRefusal : ""};
}

worker::Outcome CopyDevice::execute(const plan::Case& c, std::span<const worker::HostPort> ports,
                                    const worker::ExecuteOptions&, const worker::RunSink& sink) {
  const std::string behaviour = behaviour_of(c);
  ++executed;
  if (behaviour == "refused") {
    return {.kind = worker::Outcome::Kind::unsupported, .reason = kRefusal};
  }
  if (behaviour == "unsupported") {
    return {.kind = worker::Outcome::Kind::unsupported, .reason = "this device cannot copy"};
  }
  if (behaviour == "throws") {
    throw std::runtime_error("the device is on fire");
  }
  if (behaviour == "slow") {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::memcpy(ports[1].bytes.data(), ports[0].bytes.data(), ports[0].bytes.size());
  if (behaviour == "wrong") {
    ports[1].bytes[0] ^= std::byte{1};
  }
  worker::RunReport report;
  report.backend = "sim";
  report.label = "memcpy";
  report.guards_intact = behaviour != "out_of_bounds";
  report.outputs.push_back({"y", core::digest_of(std::span<const std::byte>(ports[1].bytes)), behaviour != "racy"});
  sink(report);
  return {};
}

plan::Case make_case(std::int64_t n, std::string_view mode, std::vector<std::string> tags,
                     std::string_view distribution) {
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

}  // namespace numcheck::run::copy
