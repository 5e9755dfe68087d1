// What failures of attention are put down to: what libraries have been seen to do, and nothing else.
#include "reference/attention_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "attention_device_run.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::DeviceRun;
using About = op::Finding::About;
using Numbers = std::vector<double>;

constexpr const char* kEmpty = "sequences without queries or without keys are left unwritten";
constexpr const char* kHalf = "half of the channels of the last rows of dq are zero";
constexpr std::int64_t kNothing = 2, kOnlyQueries = 4, kOnlyKeys = 6;  // sequences

op::AttentionParams padded(std::int64_t key_heads) {
  op::AttentionParams p;
  p.batches = 7;
  p.heads = 2;
  p.kv_heads = key_heads;
  p.sq = 20;
  p.sk = 24;
  p.d = 8;
  p.mask = "padding";
  return p;
}

DeviceRun forward_run() {
  return {op::attention_fwd(), attention_fwd_reference(), padded(2), "bf16"};
}

DeviceRun backward_run(std::int64_t key_heads = 2) {
  return {op::attention_bwd(), attention_bwd_reference(), padded(key_heads), "bf16"};
}

TEST(AttentionDiagnosis, outputs_of_queries_without_keys_that_are_not_written_are_named) {
  DeviceRun run = forward_run();
  for (const char* port : {"o", "lse"}) {
    ASSERT_FALSE(run.elements(port, kOnlyQueries).empty());
    EXPECT_EQ(run.share(port, kEmpty, About::unwritten), 0) << "nothing is wrong";
    run.lose(port, kOnlyQueries);
    EXPECT_EQ(run.share(port, kEmpty, About::unwritten), 1) << port;
    EXPECT_EQ(run.share(port, kEmpty, About::numbers), 0) << port;
  }
}

TEST(AttentionDiagnosis, fp16_scores_that_overflow_before_they_are_scaled_are_named) {
  constexpr const char* kCause = "scores above 65504 overflow in fp16";
  for (const char* bias : {"pre_scale", "post_scale"}) {
    op::AttentionParams p = padded(2);
    p.mask = "none";
    p.bias = bias;
    p.scale = 1e-4;  // scores of 7000 are products of 7 10^7
    DeviceRun run(op::attention_fwd(), attention_fwd_reference(), p, "fp16", 5000);
    for (const char* port : {"o", "lse"}) {
      run.lose(port, 0, false);
    }
    for (const char* port : {"o", "lse"}) {
      EXPECT_EQ(run.share(port, kCause, About::pattern), bias == std::string("pre_scale") ? 1 : 0)
          << port << ", " << bias;
    }
  }
}

TEST(AttentionDiagnosis, gradients_of_queries_or_keys_without_the_others_that_are_not_written_are_named) {
  DeviceRun run = backward_run();
  run.lose("dq", kOnlyQueries);
  run.lose("dk", kOnlyKeys);
  run.lose("dv", kOnlyKeys);
  for (const char* port : {"dq", "dk", "dv"}) {
    EXPECT_EQ(run.share(port, kEmpty, About::unwritten), 1) << port;
    run.lose(port, kNothing);
    EXPECT_EQ(run.share(port, kEmpty, About::unwritten), 1) << port << ", with zeros beyond the lengths";
  }
}

TEST(AttentionDiagnosis, other_elements_that_are_not_written_are_not_put_down_to_empty_sequences) {
  DeviceRun computed = forward_run();
  computed.lose("o", kOnlyQueries, false);
  EXPECT_EQ(computed.share("o", kEmpty, About::unwritten), 0) << "0 / 0 of a sum without keys is written";
  DeviceRun elsewhere = forward_run();
  elsewhere.lose("o", 0);
  EXPECT_EQ(elsewhere.share("o", kEmpty, About::unwritten), 0) << "a sequence with both";
  DeviceRun both = forward_run();
  both.lose("o", kOnlyQueries);
  both.lose("o", 0);
  EXPECT_EQ(both.share("o", kEmpty, About::unwritten), 0) << "a sequence with both as well";
  DeviceRun beyond = forward_run();
  beyond.lose("o", kNothing);
  EXPECT_EQ(beyond.share("o", kEmpty, About::unwritten), 0) << "nobody judges outputs of queries beyond the lengths";
  DeviceRun gradients = backward_run();
  gradients.lose("dk", kOnlyKeys);
  gradients.lose("dk", 0);
  EXPECT_EQ(gradients.share("dk", kEmpty, About::unwritten), 0);
}

TEST(AttentionDiagnosis, sums_of_what_was_not_written_are_named_where_heads_share_keys) {
  const auto with_garbage = [](std::int64_t key_heads, std::int64_t sequence) {
    DeviceRun run = backward_run(key_heads);
    for (const std::size_t at : run.elements("dk", sequence)) {
      run["dk"][at] = 3;
    }
    return run;
  };
  EXPECT_GT(with_garbage(1, kOnlyKeys).share("dk", kEmpty, About::numbers), 0.99);
  EXPECT_EQ(with_garbage(1, kOnlyKeys).share("dk", kEmpty, About::unwritten), 0);
  EXPECT_EQ(with_garbage(2, kOnlyKeys).share("dk", kEmpty, About::numbers), 0) << "nothing is added";
  EXPECT_EQ(with_garbage(1, 0).share("dk", kEmpty, About::numbers), 0) << "a sequence with both";
  DeviceRun sums = backward_run(1);
  sums.lose("dk", kOnlyKeys, false);
  EXPECT_EQ(sums.share("dk", kEmpty, About::unwritten), 0) << "NaN that was computed, where padding is attended";
}

op::AttentionParams fp8_case(std::int64_t queries) {
  op::AttentionParams p;
  p.heads = 3;
  p.sq = queries;
  p.sk = 40;
  p.d = 16;
  return p;
}

/// An FP8 case some of whose channels of dq are zero.
DeviceRun with_zeros(std::int64_t queries, std::int64_t first_row, std::int64_t end_row, std::int64_t first_channel,
                     std::string_view mode = "fp8_hybrid") {
  const op::AttentionParams p = fp8_case(queries);
  DeviceRun run(op::attention_bwd(), attention_bwd_reference(), p, mode);
  for (std::int64_t head = 0; head < p.heads; ++head) {
    const op::HeadPlace place = op::head_place(p, op::Side::queries, 0, head, p.d);
    for (std::int64_t i = first_row; i < end_row; ++i) {
      for (std::int64_t c = first_channel; c < p.d; ++c) {
        run["dq"][static_cast<std::size_t>(place.first + i * place.stride + c)] = 0;
      }
    }
  }
  return run;
}

double half_zero(const DeviceRun& run) {
  return run.share("dq", kHalf, About::numbers);
}

TEST(AttentionDiagnosis, halves_of_the_last_fp8_rows_that_are_zero_are_named) {
  for (const char* mode : {"fp8_hybrid", "fp8_e4m3"}) {
    EXPECT_GT(half_zero(with_zeros(100, 96, 100, 8, mode)), 0.99) << mode;
    EXPECT_GT(half_zero(with_zeros(31, 30, 31, 8, mode)), 0.99) << mode << ": only the last of 15";
    EXPECT_GT(half_zero(with_zeros(1025, 1024, 1025, 8, mode)), 0.9) << mode << ": one row of many";
  }
}

TEST(AttentionDiagnosis, other_zeros_are_not_put_down_to_the_last_fp8_rows) {
  EXPECT_EQ(half_zero(with_zeros(100, 0, 0, 0)), 0) << "rounding errors only";
  EXPECT_EQ(half_zero(with_zeros(100, 96, 100, 0)), 0) << "all channels";
  EXPECT_EQ(half_zero(with_zeros(100, 96, 100, 12)), 0) << "a quarter of the channels";
  EXPECT_EQ(half_zero(with_zeros(100, 80, 84, 8)), 0) << "rows of a whole tile";
  EXPECT_EQ(half_zero(with_zeros(100, 90, 100, 8)), 0) << "rows of a whole tile as well";
  EXPECT_EQ(half_zero(with_zeros(96, 95, 96, 8)), 0) << "no row beyond a multiple of 16";
  EXPECT_EQ(half_zero(with_zeros(100, 96, 100, 8, "bf16")), 0) << "not FP8";
  DeviceRun larger = with_zeros(100, 96, 100, 8);
  larger["dq"][0] += 30;
  EXPECT_EQ(half_zero(larger), 0) << "a larger error elsewhere";
}

constexpr const char* kLost = "keys lack the parts of whole blocks of 64 queries";

DeviceRun gradients_of(std::int64_t heads, std::string_view mode) {
  op::AttentionParams p;
  p.heads = heads;
  p.kv_heads = 1;
  p.sq = 200;
  p.sk = 40;
  p.d = 32;
  p.layout = "bhsd";
  return {op::attention_bwd(), attention_bwd_reference(), p, mode};
}

TEST(AttentionDiagnosis, blocks_of_queries_that_some_keys_lack_are_named) {
  for (const char* mode : {"fp32", "bf16", "fp8_hybrid"}) {
    for (const std::int64_t heads : {1, 2}) {
      DeviceRun run = gradients_of(heads, mode);
      run.lose_queries(64, 128, 3, 9);
      run.lose_queries(128, 200, 20, 20);
      for (const char* port : {"dk", "dv"}) {
        EXPECT_GT(run.share(port, kLost, About::numbers), 0.95) << mode << " " << port << " " << heads;
      }
    }
  }
}

TEST(AttentionDiagnosis, other_errors_are_not_put_down_to_blocks_of_queries) {
  const auto share = [](const DeviceRun& run) { return run.share("dk", kLost, About::numbers); };
  DeviceRun run = gradients_of(1, "bf16");
  EXPECT_EQ(share(run), 0) << "rounding errors only";
  run.lose_queries(0, 200, 3, 9);
  EXPECT_EQ(share(run), 0) << "all blocks";
  DeviceRun part = gradients_of(1, "bf16");
  part.lose_queries(70, 100, 3, 9);
  EXPECT_EQ(share(part), 0) << "half of a block";
  DeviceRun noisy = gradients_of(1, "bf16");
  for (std::size_t at = 100; at < 300; ++at) {
    noisy["dk"][at] *= at % 3 == 0 ? 1.5 : 0.75;
  }
  EXPECT_EQ(share(noisy), 0) << "some elements too large, some too small";
}

}  // namespace
}  // namespace numcheck::reference
