// The dropout mask that is read back from a library's forward attention.
#include "kernels/harness/mask_probe.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fake.hpp"
#include "kernels/contract/ports.hpp"
#include "op/attention_dropout.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::kernels::test {
namespace {

/// A library that keeps what the test says, and computes o for scores of 0 only.
class Library {
 public:
  explicit Library(const op::AttentionDropoutParams& params) {
    c_.op = &op::attention_dropout();
    c_.mode = op::find_mode("fp32");
    c_.params = op::to_params(params);
    ports_ = c_.op->ports(c_.params, *c_.mode);
  }

  /// [batches * heads, sq, sk]; what the probe did not write is 0.
  std::vector<float> read_back() {
    const Algorithm probe = probed();
    std::vector<std::byte> workspace(probe.workspace_bytes, std::byte{0xA5});
    std::vector<std::vector<float>> data;
    std::vector<PortMemory> memory;
    for (const op::Port& port : ports_) {
      data.emplace_back(port.extent_bytes() / sizeof(float));
      memory.push_back({&port, reinterpret_cast<std::byte*>(data.back().data())});
    }
    static_cast<void>(probe.launch(memory, workspace.data()));
    return data.back();
  }

  Algorithm probed() {
    return harness::probed_mask(memory_, {&c_, ports_, "", false}, [this](const Call& call) {
      Algorithm forward;
      forward.label = "library";
      forward.workspace_bytes = 100;
      const auto p = op::from_params<op::AttentionParams>(call.c->params);
      seen_scale = p.factor();
      forward.launch = [this, p](std::span<const PortMemory> ports, std::byte*) {
        compute(p, ports);
        return not_measured();
      };
      return forward;
    });
  }

  std::function<bool(std::int64_t task, std::int64_t i, std::int64_t j)> keeps;
  float weight = 0.25F;  ///< of a key that is kept
  double seen_scale = 0;

 private:
  void compute(const op::AttentionParams& p, std::span<const PortMemory> ports) const {
    const auto floats = [&](std::string_view name) { return reinterpret_cast<float*>(port_memory(ports, name).data); };
    for (const float* input : {floats("q"), floats("k")}) {
      EXPECT_EQ(input[0], 0) << "scores are not 0";
    }
    const std::int64_t width = p.value_channels();
    for (std::int64_t task = 0; task < p.batches * p.heads; ++task) {
      const std::int64_t batch = task / p.heads;
      const std::int64_t head = task % p.heads;
      const op::HeadPlace o = op::head_place(p, op::Side::queries, batch, head, width);
      const op::HeadPlace v = op::head_place(p, op::Side::keys, batch, head / (p.heads / p.key_heads()), width);
      const std::int64_t keys = op::sequence_length(p, op::Side::keys, batch);
      for (std::int64_t i = 0; i < op::sequence_length(p, op::Side::queries, batch); ++i) {
        for (std::int64_t c = 0; c < width; ++c) {
          float sum = 0;
          for (std::int64_t j = 0; j < keys; ++j) {
            sum += keeps(task, i, j) ? weight * floats("v")[v.first + j * v.stride + c] : -0.0F;
          }
          floats("o")[o.first + i * o.stride + c] = sum;
        }
      }
    }
  }

  FakeMemory memory_;
  plan::Case c_;
  std::vector<op::Port> ports_;
};

op::AttentionDropoutParams two_heads_of_two_sequences() {
  op::AttentionDropoutParams p;
  p.batches = 2;
  p.heads = 2;
  p.kv_heads = 1;
  p.sq = 3;
  p.sk = 11;
  p.d = 4;
  return p;
}

/// Blocks of four keys, the last of which is not full.
TEST(MaskProbe, reads_what_is_kept_of_every_key_and_layout) {
  for (const char* layout : {"bshd", "sbhd", "bhsd", "thd"}) {
    op::AttentionDropoutParams p = two_heads_of_two_sequences();
    p.layout = layout;
    p.mask = p.is_ragged() ? "padding" : "none";
    Library library(p);
    library.keeps = [](std::int64_t task, std::int64_t i, std::int64_t j) {
      return (7 * task + 5 * i + j * j) % 3 != 0;
    };
    const std::vector<float> mask = library.read_back();
    std::size_t at = 0;
    for (std::int64_t task = 0; task < 4; ++task) {
      for (std::int64_t i = 0; i < p.sq; ++i) {
        for (std::int64_t j = 0; j < p.sk; ++j, ++at) {
          const bool exists = i < op::sequence_length(p, op::Side::queries, task / 2) &&
                              j < op::sequence_length(p, op::Side::keys, task / 2);
          EXPECT_EQ(mask[at], exists && library.keeps(task, i, j) ? 1.0F : 0.0F) << layout << " " << at;
        }
      }
    }
  }
}

TEST(MaskProbe, weights_that_are_no_numbers_are_no_mask) {
  Library library(two_heads_of_two_sequences());
  library.keeps = [](std::int64_t, std::int64_t, std::int64_t) { return true; };
  library.weight = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(library.read_back().front()));
}

TEST(MaskProbe, the_sign_of_the_scale_does_not_reach_the_library) {
  op::AttentionDropoutParams p = two_heads_of_two_sequences();
  p.scale = -2;
  Library library(p);
  static_cast<void>(library.probed());
  EXPECT_EQ(library.seen_scale, 0.5);
}

TEST(MaskProbe, slopes_leave_distant_keys_no_weight) {
  op::AttentionDropoutParams p = two_heads_of_two_sequences();
  p.bias = "alibi";
  Library library(p);
  EXPECT_THROW(static_cast<void>(library.probed()), NotSupported);
}

}  // namespace
}  // namespace numcheck::kernels::test
