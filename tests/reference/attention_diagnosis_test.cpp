// What failures of attention are put down to: what libraries have been seen to do, and nothing else.
#include "reference/attention_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"
#include "op_problem.hpp"
#include "reference/references.hpp"

namespace numcheck::reference {
namespace {

using testing::Inputs;
using testing::Problem;
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

/// A case, and what a device delivers: at first what is expected, rounded to the outputs' formats.
class DeviceRun {
 public:
  DeviceRun(const op::Op& op, const op::Reference& reference, const op::AttentionParams& p, std::string_view mode,
            double sigma = 1)
      : p_(p), problem_{&op, reference, op::to_params(p), mode} {
    for (const op::Port& port : problem_.ports()) {
      if (port.role == op::Role::input) {
        const auto size = static_cast<std::size_t>(port.elements());
        inputs_[std::string(port.name)] =
            !port.is_generated() ? testing::derived(problem_, inputs_, port.name, Numbers(size))
                                 : testing::noise(size, static_cast<unsigned>(inputs_.size()) + 1, sigma, 0);
      }
    }
    expected_ = testing::evaluate(problem_, inputs_);
    for (const op::OutputValues& output : expected_.outputs) {
      const core::Dtype format = op::port_named(ports_, output.port).dtype;
      Numbers& numbers = got_[std::string(output.port)] = testing::copied(output.value);
      std::ranges::transform(numbers, numbers.begin(), [format](double y) { return core::round_to(y, format); });
    }
  }

  [[nodiscard]] Numbers& operator[](const std::string& port) { return got_[port]; }

  [[nodiscard]] double largest_expected(std::string_view port) const {
    const std::span<const double> y = std::ranges::find(expected_.outputs, port, &op::OutputValues::port)->value.span();
    return std::ranges::max(y | std::views::transform([](double value) { return std::fabs(value); }));
  }

  /// Elements of a sequence, positions beyond its lengths and all heads included.
  [[nodiscard]] std::vector<std::size_t> elements(const std::string& port, std::int64_t batch) const {
    const op::Side side = port == "dk" || port == "dv" ? op::Side::keys : op::Side::queries;
    const std::int64_t channels = port == "lse" ? 1 : p_.d;
    std::vector<std::size_t> list;
    for (std::int64_t head = 0; head < op::heads_of(p_, side); ++head) {
      const op::HeadPlace place =
          port == "lse" ? op::statistic_place(p_, batch, head) : op::head_place(p_, side, batch, head, channels);
      for (std::int64_t i = 0; i < op::positions(p_, side, batch); ++i) {
        for (std::int64_t c = 0; c < channels; ++c) {
          list.push_back(static_cast<std::size_t>(place.first + i * place.stride + c));
        }
      }
    }
    return list;
  }

  /// NaN in a sequence; `unwritten`: which nobody has computed.
  void lose(const std::string& port, std::int64_t batch, bool unwritten = true) {
    for (const std::size_t at : elements(port, batch)) {
      got_[port][at] = std::numeric_limits<double>::quiet_NaN();
      if (unwritten) {
        unwritten_[port].push_back(at);
      }
    }
    std::ranges::sort(unwritten_[port]);
  }

  /// dk and dv of the keys [first, last] of the first sequence without the parts of its queries [begin, end): those have no
  /// gradient.
  void lose_queries(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last) {
    Inputs fewer = inputs_;
    for (std::int64_t head = 0; head < p_.heads; ++head) {
      const op::HeadPlace place = op::head_place(p_, op::Side::queries, 0, head, p_.value_channels());
      for (std::int64_t i = begin; i < end; ++i) {
        std::fill_n(fewer["do"].begin() + place.first + i * place.stride, p_.value_channels(), 0.0);
      }
    }
    const op::Values values = testing::evaluate(problem_, fewer);
    for (const std::string port : {"dk", "dv"}) {
      const Numbers lacking = testing::value_of(values, port);
      const core::Dtype format = op::port_named(ports_, port).dtype;
      for (std::int64_t head = 0; head < p_.key_heads(); ++head) {
        const op::HeadPlace place = op::head_place(p_, op::Side::keys, 0, head, p_.d);
        for (std::int64_t at = place.first + first * place.stride; at < place.first + last * place.stride + p_.d;
             ++at) {
          got_[port][static_cast<std::size_t>(at)] = core::round_to(lacking[static_cast<std::size_t>(at)], format);
        }
      }
    }
  }

  /// The share of what is wrong with a port that a cause explains; 0 if it is not named.
  [[nodiscard]] double share(std::string_view port, std::string_view cause, About about) const {
    std::vector<op::Delivered> delivered;
    for (const auto& [name, numbers] : got_) {
      const auto unwritten = unwritten_.find(name);
      delivered.push_back({name, numbers, op::port_named(ports_, name).dtype, 1,
                           unwritten == unwritten_.end() ? std::span<const std::size_t>() : unwritten->second});
    }
    const std::vector<op::Operand> operands = testing::operands_of(problem_, inputs_);
    const op::Sample all;
    const op::FindingRequest request{&problem_.params, operands, &expected_, delivered, &all};
    const bool forward = problem_.op == &op::attention_fwd();
    double share = 0;
    for (const op::Finding& finding : forward ? diagnose_attention(request) : diagnose_attention_gradients(request)) {
      share = finding.port == port && finding.cause == cause && finding.about == about ? finding.measured : share;
    }
    return share;
  }

 private:
  op::AttentionParams p_;
  Problem problem_;
  std::vector<op::Port> ports_ = problem_.ports();
  Inputs inputs_;
  op::Values expected_;
  std::map<std::string, Numbers, std::less<>> got_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> unwritten_;
};

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

constexpr const char* kPadding = "queries that are padding count in the amax";

TEST(AttentionDiagnosis, an_amax_that_counts_padding_may_be_off_by_what_rounded_weights_leave) {
  op::AttentionParams p;
  p.sq = 288;
  p.sk = 300;
  p.d = 64;
  p.mask = "padding";
  DeviceRun run(op::attention_fwd(), attention_fwd_reference(), p, "fp8_e4m3", 0.5);
  double expected = 0;
  for (const std::size_t at : run.elements("o", 0)) {
    expected = std::max(expected, std::fabs(run["o"][at]));
  }
  const auto share_at = [&](double ratio) {
    run["o_amax"] = {expected * ratio};
    return run.share("o_amax", kPadding, About::numbers);
  };
  constexpr double kStep = 0.001;
  double high = 1.5;  // the largest ratio that padding explains, over the most keys that it may have been weighed over
  while (high > 1 && share_at(high) < 1) {
    high -= kStep;
  }
  double low = high;
  while (low > 1 && share_at(low - kStep) == 1) {
    low -= kStep;
  }
  ASSERT_GT(low, 1.05) << "padding makes no difference here";
  EXPECT_NEAR(high - low, 0.04 * (low + high) / 2, 0.004);
  EXPECT_GT(share_at((low + high) / 2 * 1.01), 0.95);
  EXPECT_LT(share_at(low * 0.97), 0.95) << "less";
  EXPECT_LT(share_at(high * 1.1), 0.95) << "more than padding has";
}

TEST(AttentionDiagnosis,
     an_amax_that_counts_padding_is_within_its_reach_where_scores_are_too_large_to_tell_keys_apart) {
  op::AttentionParams p;
  p.sq = 512;
  p.sk = 512;
  p.d = 64;
  p.scale = 1e6;
  p.mask = "padding";
  DeviceRun run(op::attention_fwd(), attention_fwd_reference(), p, "fp8_hybrid", 0.5);
  const double expected = run.largest_expected("o");
  const auto share_at = [&](double ratio) {
    run["o_amax"] = {expected * ratio};
    return run.share("o_amax", kPadding, About::numbers);
  };
  EXPECT_EQ(share_at(1.02), 1) << "between two values, as no weight is known";
  EXPECT_EQ(share_at(1), 0) << "right";
  EXPECT_LT(share_at(1e6), 0.95) << "more than any weight makes of any value";
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
