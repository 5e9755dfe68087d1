// Cases that run two ops one after another: a backward pass on what the same backend's forward pass leaves.
#include "kernels/harness/passes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/sim.hpp"
#include "op/attention_bwd.hpp"

namespace numcheck::kernels::harness {
namespace {

using Numbers = std::vector<float>;

/// One query and two keys, whose scores are 0 and log 3: the weights are 1/4 and 3/4, o = 4 and lse = log 4.
struct TwoKeys {
  TwoKeys() {
    op::AttentionParams p;
    p.sq = 1;
    p.sk = 2;
    p.d = 1;
    p.scale = 2;
    p.statistics = "device";
    c.op = &op::attention_bwd();
    c.mode = op::find_mode("fp32");
    c.params = op::to_params(p);
    c.backend = "sim";
    ports = c.op->ports(c.params, *c.mode);
    const std::map<std::string, Numbers, std::less<>> inputs = {
        {"q", {0.5F}}, {"k", {0, std::log(3.0F)}}, {"v", {1, 5}}, {"do", {10}}};
    for (const op::Port& port : ports) {
      Numbers& numbers = values[std::string(port.name)];
      numbers.resize(static_cast<std::size_t>(port.elements()));
      if (const auto given = inputs.find(port.name); given != inputs.end()) {
        numbers = given->second;
      }
      host.push_back({&port, std::as_writable_bytes(std::span(numbers))});
    }
  }

  worker::Outcome run(Backend& backend, const std::string& fault = {}) {
    return run_case(backend, c, host, {.inject = fault},
                    [this](const worker::RunReport& report) { reports.push_back(report); });
  }

  plan::Case c;
  std::vector<op::Port> ports;
  std::map<std::string, Numbers, std::less<>> values;
  std::vector<worker::HostPort> host;
  std::vector<worker::RunReport> reports;
};

constexpr int kSm = 90;

std::unique_ptr<Backend> both_directions() {
  static const std::array<const Binding*, 2> bindings = {&sim::attention_fwd(), &sim::attention_bwd()};
  return sim::make_backend(kSm, bindings);
}

TEST(HarnessPasses, the_last_reads_what_the_first_leaves) {
  TwoKeys test;
  const auto backend = both_directions();
  EXPECT_EQ(test.run(*backend).kind, worker::Outcome::Kind::done);
  ASSERT_EQ(test.reports.size(), 1U);
  EXPECT_EQ(test.reports[0].error, "");
  EXPECT_TRUE(test.reports[0].deterministic());
  EXPECT_TRUE(test.reports[0].guards_intact) << test.reports[0].guard_detail;
  EXPECT_EQ(test.reports[0].outputs.size(), 5U);
  constexpr float kClose = 1e-5F;
  EXPECT_NEAR(test.values["o"][0], 4, kClose);
  EXPECT_NEAR(test.values["lse"][0], std::log(4.0F), kClose);
  EXPECT_NEAR(test.values["dv"][0], 2.5, kClose);
  EXPECT_NEAR(test.values["dv"][1], 7.5, kClose);
  EXPECT_NEAR(test.values["dk"][0], -7.5, kClose);
  EXPECT_NEAR(test.values["dk"][1], 7.5, kClose);
}

TEST(HarnessPasses, a_fault_is_planted_where_it_is_known) {
  TwoKeys test;
  const auto backend = both_directions();
  EXPECT_EQ(test.run(*backend, "lse_in_log2").kind, worker::Outcome::Kind::done);
  constexpr float kClose = 1e-5F;
  EXPECT_NEAR(test.values["lse"][0], 2, kClose);
  // exp(-2) for 1/4: the wrong statistic has reached the backward pass.
  EXPECT_NEAR(test.values["dv"][0], 10 * std::exp(-2.0F), kClose);
}

TEST(HarnessPasses, a_fault_that_none_can_have_is_refused_with_both_reasons) {
  TwoKeys test;
  const auto backend = both_directions();
  const worker::Outcome outcome = test.run(*backend, "stale_lse");
  EXPECT_EQ(outcome.kind, worker::Outcome::Kind::unsupported);
  EXPECT_NE(outcome.reason.find("all keys are in one tile"), std::string::npos) << outcome.reason;
  EXPECT_NE(outcome.reason.find("attention_bwd has no such fault"), std::string::npos) << outcome.reason;
}

TEST(HarnessPasses, a_backend_without_the_first_is_unsupported_for_that_reason) {
  TwoKeys test;
  static const std::array<const Binding*, 1> only_backward = {&sim::attention_bwd()};
  const auto backend = sim::make_backend(kSm, only_backward);
  const worker::Outcome outcome = test.run(*backend);
  EXPECT_EQ(outcome.kind, worker::Outcome::Kind::unsupported);
  EXPECT_EQ(
      outcome.reason,
      "sim does not run attention_fwd, whose results this case reads: the simulated device does not compute the op "
      "attention_fwd");
  EXPECT_TRUE(test.reports.empty());
}

/// Notes how each pass is called.
class Recorder : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "recorder"; }
  [[nodiscard]] const machine::Device& device() const override { return device_; }
  [[nodiscard]] Support supports(const Call&) override { return {}; }
  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    const std::string op(call.c->op->name);
    const bool first = op == "attention_fwd";
    chained.push_back(call.chained);
    Algorithm algorithm;
    algorithm.label = op;
    algorithm.details = {{"tile", "64"}};
    algorithm.workspace_bytes = first ? 100 : 10;
    algorithm.unordered = {first ? "lse" : "dk"};
    algorithm.rounding.attention =
        first ? model::AttentionRounding{.approximate_tanh = true} : model::AttentionRounding{.head_gradients = true};
    algorithm.launch = [this, op](std::span<const PortMemory> ports, std::byte* workspace) -> DeviceSeconds {
      launches.push_back(op);
      workspaces.push_back(workspace);
      roles[op] = find_role(ports, "lse");
      return [] { return 0.5; };
    };
    return std::vector<Algorithm>(first ? 3 : 2, algorithm);
  }
  [[nodiscard]] std::vector<std::string> configurations(const Call& call) override {
    return {std::string(call.c->op->name)};
  }
  [[nodiscard]] DeviceMemory& memory() override { throw core::InternalError("no memory is needed"); }

  static op::Role find_role(std::span<const PortMemory> ports, std::string_view name) {
    return std::ranges::find(ports, name, [](const PortMemory& memory) { return memory.port->name; })->port->role;
  }

  std::vector<bool> chained;
  std::vector<std::string> launches;
  std::vector<std::byte*> workspaces;
  std::map<std::string, op::Role> roles;

 private:
  machine::Device device_;
};

TEST(HarnessPasses, an_algorithm_has_all_that_its_passes_have) {
  Recorder backend;
  TwoKeys test;
  const Call call{&test.c, test.ports, ""};
  EXPECT_EQ(configurations_of(backend, call), (std::vector<std::string>{"attention_fwd", "attention_bwd"}));
  const std::vector<Algorithm> all = algorithms_of(backend, call);
  EXPECT_EQ(backend.chained, (std::vector<bool>{false, true}));
  ASSERT_EQ(all.size(), 2U) << "those of the last pass, each after the first one of the first";
  const Algorithm& both = all.front();
  EXPECT_EQ(both.label, "attention_fwd; then attention_bwd");
  EXPECT_EQ(both.details,
            (std::vector<std::pair<std::string, std::string>>{{"tile", "64"}, {"attention_fwd: tile", "64"}}));
  EXPECT_EQ(both.workspace_bytes, 256U + 10U);
  EXPECT_EQ(both.launches, 2);
  EXPECT_EQ(both.unordered, (std::vector<std::string>{"dk", "lse", "dq", "dk", "dv"})) << "what reads lse differs, too";
  EXPECT_TRUE(both.rounding.attention.approximate_tanh);
  EXPECT_TRUE(both.rounding.attention.head_gradients);
  std::vector<std::byte> bytes(64);
  std::vector<PortMemory> memory;
  for (const op::Port& port : test.ports) {
    memory.push_back({&port, bytes.data()});
  }
  std::vector<std::byte> workspace(both.workspace_bytes);
  EXPECT_EQ(both.launch(memory, workspace.data())(), 1.0);
  EXPECT_EQ(backend.launches, (std::vector<std::string>{"attention_fwd", "attention_bwd"}));
  EXPECT_EQ(backend.workspaces[1] - backend.workspaces[0], 256);
  EXPECT_EQ(backend.roles.at("attention_fwd"), op::Role::output);
  EXPECT_EQ(backend.roles.at("attention_bwd"), op::Role::input);
}

}  // namespace
}  // namespace numcheck::kernels::harness
