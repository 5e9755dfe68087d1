// Where attention's tensors have their elements: every element has a place of its own, and packed tensors fill their
// buffer.
#include "op/attention_layout.hpp"

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "op/attention_bwd.hpp"
#include "op/attention_fwd.hpp"
#include "op/mode.hpp"

namespace numcheck::op {
namespace {

using Places = std::vector<std::int64_t>;

AttentionParams small(std::string layout, std::string packing = "none") {
  AttentionParams p;
  p.batches = 9;
  p.heads = 4;
  p.kv_heads = packing.starts_with("qkv") ? 4 : 2;
  p.sq = 7;
  p.sk = packing.starts_with("qkv") ? 7 : 5;
  p.d = 3;
  p.mask = "padding";
  p.layout = std::move(layout);
  p.packing = std::move(packing);
  return p;
}

Port port_of(const AttentionParams& p, std::string_view name) {
  return port_named(attention_fwd().ports(to_params(p), *find_mode("bf16")), name);
}

/// The element in memory, from the start of the buffer, of each element of the port in its own order.
Places memory_of(const Port& port) {
  const std::int64_t first = port.offset_bytes / core::dtype_info(port.dtype).storage_bytes;
  Places places;
  for (std::int64_t row = 0; row < port.batch * port.rows; ++row) {
    for (std::int64_t c = 0; c < port.cols; ++c) {
      places.push_back(first + row / port.rows * port.batch_stride + row % port.rows * port.ld + c);
    }
  }
  return places;
}

/// Strides lead to the same memory as the port.
void expect_agreement(const AttentionParams& p, Side side, std::string_view name) {
  const Places memory = memory_of(port_of(p, name));
  const HeadStrides strides = memory_strides(p, side, name, p.d);
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const std::int64_t sequence =
        strides.first + (p.is_ragged() ? first_token(p, side, batch) * strides.position : batch * strides.batch);
    for (std::int64_t head = 0; head < heads_of(p, side); ++head) {
      const HeadPlace logical = head_place(p, side, batch, head, p.d);
      for (std::int64_t i = 0; i < positions(p, side, batch); ++i) {
        ASSERT_EQ(memory.at(static_cast<std::size_t>(logical.first + i * logical.stride)),
                  sequence + head * strides.head + i * strides.position)
            << name << " " << p.layout << " " << p.packing;
      }
    }
  }
}

TEST(AttentionLayout, strides_lead_to_the_elements_of_ports) {
  for (const char* layout : {"bshd", "sbhd", "bhsd", "thd"}) {
    for (const char* packing : {"none", "qkv_3hd", "qkv_h3d", "kv_2hd", "kv_h2d"}) {
      const AttentionParams p = small(layout, packing);
      if (check_attention("attention_fwd", p).empty()) {
        expect_agreement(p, Side::queries, "q");
        expect_agreement(p, Side::keys, "k");
        expect_agreement(p, Side::keys, "v");
        expect_agreement(p, Side::queries, "o");
      }
    }
  }
}

TEST(AttentionLayout, packed_tensors_fill_one_buffer) {
  for (const char* layout : {"bshd", "sbhd", "thd"}) {
    for (const char* packing : {"qkv_3hd", "qkv_h3d", "kv_2hd", "kv_h2d"}) {
      const AttentionParams p = small(layout, packing);
      std::multiset<std::int64_t> used;
      for (const std::string_view name : {"q", "k", "v"}) {
        if (name != "q" || p.packs_queries()) {
          const Places places = memory_of(port_of(p, name));
          used.insert(places.begin(), places.end());
        }
      }
      std::int64_t next = 0;
      for (const std::int64_t place : used) {
        ASSERT_EQ(place, next++) << layout << " " << packing;
      }
    }
  }
}

TEST(AttentionLayout, gradients_are_packed_like_their_tensors) {
  const std::vector<Port> ports = attention_bwd().ports(to_params(small("thd", "qkv_h3d")), *find_mode("bf16"));
  for (const std::string name : {"q", "k", "v"}) {
    const Port& tensor = port_named(ports, name);
    const Port& gradient = port_named(ports, "d" + name);
    EXPECT_EQ(gradient.ld, tensor.ld);
    EXPECT_EQ(gradient.offset_bytes, tensor.offset_bytes);
  }
  EXPECT_TRUE(port_named(ports, "do").is_dense());
}

TEST(AttentionLayout, ragged_sequences_follow_one_another) {
  AttentionParams p = small("thd");
  p.batches = 19;
  for (const std::int64_t align : {1, 4}) {
    p.align = align;
    std::int64_t next = 0;
    for (std::int64_t batch = 0; batch < p.batches; ++batch) {
      EXPECT_EQ(first_token(p, Side::queries, batch), next);
      next = (next + sequence_length(p, Side::queries, batch) + align - 1) / align * align;
    }
    EXPECT_EQ(tokens(p, Side::queries), next);
    EXPECT_EQ(port_of(p, "q").rows, next);
    EXPECT_EQ(port_of(p, "lse").elements(), next * p.heads);
  }
}

TEST(AttentionLayout, lengths_have_every_kind_of_sequence) {
  const AttentionParams p = small("bshd");
  const std::vector<std::int64_t> queries = sequence_lengths(p, Side::queries);
  const std::vector<std::int64_t> keys = sequence_lengths(p, Side::keys);
  EXPECT_EQ(queries[0], p.sq);
  EXPECT_EQ(keys[0], p.sk);
  EXPECT_EQ(queries[2] + keys[2], 0);
  EXPECT_TRUE(queries[4] > 0 && keys[4] == 0);
  EXPECT_TRUE(queries[6] == 0 && keys[6] > 0);
  for (const std::size_t other : {1, 3, 5, 7}) {
    EXPECT_TRUE(queries[other] >= 1 && queries[other] <= p.sq);
    EXPECT_TRUE(keys[other] >= 1 && keys[other] <= p.sk);
  }
  EXPECT_EQ(queries[8], queries[0]);
}

TEST(AttentionLayout, unused_elements_are_those_beyond_the_lengths) {
  for (const char* layout : {"bshd", "sbhd", "bhsd", "thd"}) {
    AttentionParams p = small(layout);
    p.align = p.is_ragged() ? 4 : 1;
    const std::vector<std::int64_t> lengths = sequence_lengths(p, Side::keys);
    std::int64_t elements = 0;
    for (const OutputValues::Range& range : unused_elements(p, Side::keys, p.d, lengths)) {
      elements += range.end - range.begin;
    }
    for (const std::int64_t length : lengths) {
      elements += length * p.key_heads() * p.d;
    }
    EXPECT_EQ(elements, port_of(p, "k").elements()) << layout;
  }
}

TEST(AttentionLayout, mistakes_are_explained) {
  const auto says = [](const AttentionParams& p, std::string_view phrase) {
    for (const std::string& mistake : check_attention("attention_fwd", p)) {
      if (mistake.find(phrase) != std::string::npos) {
        return true;
      }
    }
    return false;
  };
  AttentionParams p = small("thd");
  p.mask = "causal";
  EXPECT_TRUE(says(p, "layout thd has sequences of different lengths"));
  p = small("bshd");
  p.align = 4;
  EXPECT_TRUE(says(p, "align is for layout thd"));
  EXPECT_TRUE(says(small("bhsd", "kv_2hd"), "packing needs layout"));
  p = small("bshd", "qkv_3hd");
  p.kv_heads = 2;
  EXPECT_TRUE(says(p, "the same heads and lengths"));
  p = small("bshd", "kv_h2d");
  p.dv = 2;
  EXPECT_TRUE(says(p, "packed tensors have the same channels"));
}

}  // namespace
}  // namespace numcheck::op
