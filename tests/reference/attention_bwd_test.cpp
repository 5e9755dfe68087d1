// Gradients of attention: by hand, and as differences of the forward reference for random shapes, masks and biases.
#include "op/attention_bwd.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "attention_cases.hpp"
#include "core/parallel.hpp"
#include "op/attention_fwd.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using op::AttentionParams;
using testing::Inputs;
using testing::noise;
using testing::Problem;
using testing::Random;
using testing::random_attention;
using testing::value_of;
using Numbers = std::vector<double>;

Problem forward(const AttentionParams& p) {
  return {&op::attention_fwd(), attention_fwd_reference(), op::to_params(p)};
}
Problem backward(const AttentionParams& p) {
  return {&op::attention_bwd(), attention_bwd_reference(), op::to_params(p)};
}

/// Adds what the backward pass derives from its inputs.
void add_forward_pass(const AttentionParams& p, Inputs& inputs) {
  const Problem problem = backward(p);
  for (const char* port : {"o", "lse"}) {
    const auto size = static_cast<std::size_t>(op::port_named(problem.ports(), port).elements());
    inputs[port] = testing::derived(problem, inputs, port, Numbers(size));
  }
}

bool are_same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Two keys with the weights 1/4 and 3/4, and the values 1 and 5: o = 4.
TEST(AttentionGradient, by_hand) {
  AttentionParams p;
  p.sq = 1;
  p.sk = 2;
  p.d = 1;
  p.scale = 2;
  Inputs inputs = {{"q", {0.5}}, {"k", {0, std::log(3)}}, {"v", {1, 5}}, {"do", {10}}};
  add_forward_pass(p, inputs);
  EXPECT_DOUBLE_EQ(inputs["o"][0], 4);
  EXPECT_DOUBLE_EQ(inputs["lse"][0], std::log(4));
  const op::Values values = testing::evaluate(backward(p), inputs);
  const Numbers dq = value_of(values, "dq"), dk = value_of(values, "dk"), dv = value_of(values, "dv");
  EXPECT_NEAR(dv[0], 2.5, 1e-14);
  EXPECT_NEAR(dv[1], 7.5, 1e-14);
  // ds = p (dp - D): 1/4 (10 - 40) and 3/4 (50 - 40)
  EXPECT_NEAR(dk[0], 2 * -7.5 * 0.5, 1e-13);
  EXPECT_NEAR(dk[1], 2 * 7.5 * 0.5, 1e-13);
  EXPECT_NEAR(dq[0], 2 * 7.5 * std::log(3), 1e-13);
}

TEST(AttentionGradient, what_is_not_seen_gets_none_and_does_not_leak) {
  AttentionParams p;
  p.sq = 2;
  p.sk = 3;
  p.d = 1;
  p.mask = "causal";
  Inputs inputs = {{"q", {1, 2}},
                   {"k", {1, 2, std::nan("")}},
                   {"v", {1, 5, std::numeric_limits<double>::infinity()}},
                   {"do", {10, 20}}};
  add_forward_pass(p, inputs);
  const op::Values values = testing::evaluate(backward(p), inputs);
  for (const char* port : {"dq", "dk", "dv"}) {
    EXPECT_TRUE(std::ranges::all_of(value_of(values, port), [](double x) { return std::isfinite(x); })) << port;
  }
  EXPECT_EQ(value_of(values, "dk")[2], 0);
  EXPECT_EQ(value_of(values, "dv")[2], 0);
}

/// sum do o of the forward pass, over the queries that sequences have.
double loss(const AttentionParams& p, const Inputs& inputs) {
  const Numbers o = value_of(forward(p), inputs, "o");
  double sum = 0;
  for (std::size_t n = 0; n < o.size(); ++n) {
    sum += o[n] * inputs.find("do")->second[n];
  }
  return sum;
}

TEST(AttentionGradient, is_the_derivative_of_the_forward_pass) {
  Random random(7);
  for (unsigned round = 0; round < 60; ++round) {
    const AttentionParams p = random_attention(random, {300, 300, 2, 5});
    const Problem problem = backward(p);
    Inputs inputs;
    for (const op::Port& port : problem.ports()) {
      if (port.role == op::Role::input && port.name != "o" && port.name != "lse") {
        Numbers draws =
            noise(static_cast<std::size_t>(port.elements()), 11 * round + static_cast<unsigned>(inputs.size()));
        inputs[std::string(port.name)] =
            !port.is_generated() ? testing::derived(problem, inputs, port.name, draws) : draws;
      }
    }
    add_forward_pass(p, inputs);
    const op::Values values = testing::evaluate(problem, inputs);
    for (const char* port : {"q", "k", "v", "bias", "softmax_offset"}) {
      if (!inputs.contains(port)) {
        continue;
      }
      const Numbers gradient = value_of(values, "d" + std::string(port));
      const std::size_t step = std::max<std::size_t>(1, gradient.size() / 6);
      for (std::size_t n = round % step; n < gradient.size(); n += step) {
        constexpr double kStep = 1e-5;
        Inputs moved = inputs;
        moved[port][n] += kStep;
        const double above = loss(p, moved);
        moved[port][n] -= 2 * kStep;
        const double difference = (above - loss(p, moved)) / (2 * kStep);
        EXPECT_NEAR(gradient[n], difference, 1e-7 * std::max(1.0, std::fabs(difference)))
            << "round " << round << ", d" << port << "[" << n << "]: " << p.mask << " " << p.bias << " " << p.softmax
            << " " << p.layout << " sq " << p.sq << " sk " << p.sk;
      }
    }
    if (HasFailure()) {
      break;
    }
  }
}

// With enough heads for all threads, gradients of queries are summed together with those of keys, otherwise on their own.
TEST(AttentionGradient, does_not_depend_on_the_number_of_threads_or_on_error_models) {
  const int threads = core::thread_count();
  for (const char* layout : {"bshd", "bhsd", "thd"}) {
    for (const bool special : {false, true}) {
      AttentionParams p;
      p.batches = 2;
      p.heads = 4;
      p.kv_heads = 2;
      p.sq = 300;
      p.sk = 530;
      p.d = 20;
      p.dv = 27;
      p.layout = layout;
      p.mask = p.is_ragged() ? "padding_causal" : "causal";
      p.softcap = special ? 3 : 0;
      const Problem problem = backward(p);
      Inputs inputs;
      unsigned seed = 1;
      for (const op::Port& port : problem.ports()) {
        const bool drawn = port.role == op::Role::input && port.is_generated();
        if (drawn) {
          inputs[std::string(port.name)] = noise(static_cast<std::size_t>(port.elements()), seed++);
        }
      }
      for (const char* port : {"q_lengths", "kv_lengths"}) {
        if (p.is_ragged()) {
          inputs[port] = testing::derived(problem, inputs, port, Numbers(2));
        }
      }
      if (special) {
        inputs["k"][inputs["k"].size() / 2] = std::numeric_limits<double>::infinity();
        inputs["do"][inputs["do"].size() / 3] = std::nan("");
      }
      add_forward_pass(p, inputs);
      core::set_thread_count(1);
      const op::Values first = testing::evaluate(problem, inputs, true), facts = testing::evaluate(problem, inputs);
      for (const int count : {3, 5}) {
        core::set_thread_count(count);
        const op::Values again = testing::evaluate(problem, inputs, true);
        for (const char* port : {"dq", "dk", "dv"}) {
          const Numbers a = value_of(first, port), b = value_of(again, port), c = value_of(facts, port);
          EXPECT_TRUE(std::ranges::equal(a, b, are_same)) << port << " of " << layout << ", " << count << " threads";
          EXPECT_TRUE(special || std::ranges::equal(a, c, are_same)) << port << " of " << layout << " with facts";
        }
      }
      core::set_thread_count(threads);
    }
  }
}

}  // namespace
}  // namespace numcheck::reference
