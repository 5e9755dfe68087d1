// The exact leg of attention: every output is a row of v or the mean of all rows that the query sees, in any format.
#include "op/attention_exact.hpp"

#include <cmath>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "attention_cases.hpp"
#include "core/codec.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::Problem;
using testing::Random;
using testing::random_attention;
using testing::value_of;
using Numbers = std::vector<double>;

/// Integers as the generator draws them, up to `largest`, of either sign.
Numbers integers(std::size_t count, unsigned seed, int largest) {
  std::mt19937 random(seed);
  Numbers numbers(count);
  for (double& x : numbers) {
    x = std::uniform_int_distribution<int>(1, largest)(random) * (random() % 2 == 0 ? 1 : -1);
  }
  return numbers;
}

Inputs exact_inputs(const Problem& problem, const op::AttentionParams& p, unsigned seed) {
  Inputs inputs;
  for (const op::Port& port : problem.ports()) {
    if (port.role == op::Role::input) {
      Numbers& values = inputs[std::string(port.name)];
      if (!port.is_generated()) {
        values = testing::derived(problem, inputs, port.name, Numbers(static_cast<std::size_t>(port.elements())));
        continue;
      }
      values = integers(static_cast<std::size_t>(port.elements()), ++seed, port.name == "q" ? 1 << 20 : 127);
      op::attention_exact_inputs(p, port, values);
    }
  }
  return inputs;
}

op::AttentionParams random_exact(Random& random) {
  op::AttentionParams p;
  do {
    p = random_attention(random, {.queries = 40, .keys = 70, .shared_heads = 3, .channels = 40});
    p.bias = "none";
    p.softcap = 0;
  } while (!op::attention_exact_obstacle(p).empty());
  return p;
}

/// Checks one query's output; true if it is a single row.
bool check_output(const op::AttentionParams& p, const Numbers& v, std::int64_t batch, std::int64_t head, std::int64_t i,
                  const double* o) {
  const std::int64_t width = p.value_channels(), of_keys = head / (p.heads / p.key_heads());
  const op::HeadPlace place = op::head_place(p, op::Side::keys, batch, of_keys, width);
  const op::KeyRange seen =
      p.visible(i, op::sequence_length(p, op::Side::queries, batch), op::sequence_length(p, op::Side::keys, batch));
  const int sink = p.softmax == "off_by_one" ? 1 : 0;
  bool is_row = false, is_mean = true;
  for (std::int64_t c = 0; c < width; ++c) {
    double sum = 0;
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      sum += v[static_cast<std::size_t>(place.first + j * place.stride + c)];
    }
    is_mean &= o[c] == (seen.size() == 0 ? 0 : sum / static_cast<double>(seen.size() + sink));
  }
  for (std::int64_t j = seen.begin; j < seen.end && !is_row; ++j) {
    is_row = true;
    for (std::int64_t c = 0; c < width; ++c) {
      is_row &= o[c] * (1 + sink) == v[static_cast<std::size_t>(place.first + j * place.stride + c)];
    }
  }
  EXPECT_TRUE(is_row || is_mean) << "batch " << batch << ", head " << head << ", query " << i;
  return is_row && !is_mean;
}

TEST(AttentionExact, outputs_are_rows_of_v_or_means_of_them) {
  Random random(5);
  int rows = 0, others = 0;
  for (unsigned n = 0; n < 60; ++n) {
    const op::AttentionParams p = random_exact(random);
    const Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(p)};
    const Inputs inputs = exact_inputs(problem, p, 10 * n);
    const Numbers o = value_of(testing::evaluate(problem, inputs), "o");
    for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
      const op::HeadPlace place =
          op::head_place(p, op::Side::queries, task / p.heads, task % p.heads, p.value_channels());
      for (std::int64_t i = 0; i < op::sequence_length(p, op::Side::queries, task / p.heads); ++i) {
        const bool is_row = check_output(p, inputs.at("v"), task / p.heads, task % p.heads, i,
                                         o.data() + place.first + i * place.stride);
        ++(is_row ? rows : others);
      }
    }
  }
  EXPECT_GT(rows, 100);
  EXPECT_GT(others, 100);
}

TEST(AttentionExact, inputs_are_numbers_of_every_format) {
  Random random(6);
  for (unsigned n = 0; n < 60; ++n) {
    const op::AttentionParams p = random_exact(random);
    const Problem problem{&op::attention_fwd(), attention_fwd_reference(), op::to_params(p)};
    for (const auto& [port, values] : exact_inputs(problem, p, 10 * n)) {
      for (const double x : values) {
        ASSERT_EQ(core::round_to(x, core::Dtype::bf16), x) << port;
        ASSERT_EQ(core::round_to(x, core::Dtype::fp16), x) << port;
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::reference
