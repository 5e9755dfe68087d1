#include "diagnose/crop_attention.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::diagnose {
namespace {

using op::AttentionParams;
using op::Side;

AttentionParams shape(const char* layout) {
  AttentionParams p;
  p.batches = 3;
  p.heads = 6;
  p.sq = 4;
  p.sk = 5;
  p.d = 2;
  p.layout = layout;
  return p;
}

/// Numbers that say where they are: 1000 batch + 100 head + 10 position + channel.
core::Buffer<double> places(const AttentionParams& p, Side side) {
  core::Buffer<double> values(static_cast<std::size_t>(p.batches * op::heads_of(p, side) * op::longest(p, side) * p.d));
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    for (std::int64_t head = 0; head < op::heads_of(p, side); ++head) {
      const op::HeadPlace place = op::head_place(p, side, batch, head, p.d);
      for (std::int64_t i = 0; i < op::longest(p, side); ++i) {
        for (std::int64_t c = 0; c < p.d; ++c) {
          values[static_cast<std::size_t>(place.first + i * place.stride + c)] =
              static_cast<double>(1000 * batch + 100 * head + 10 * i + c);
        }
      }
    }
  }
  return values;
}

Subject attention(const AttentionParams& p) {
  Subject subject;
  subject.c.op = &op::attention_fwd();
  subject.c.mode = op::find_mode("fp32");
  subject.c.params = op::to_params(p);
  for (const auto& [port, side] : {std::pair{"q", Side::queries}, {"k", Side::keys}, {"v", Side::keys}}) {
    subject.inputs.set(port, std::make_shared<const core::Buffer<double>>(places(p, side)));
  }
  const core::Buffer<double> o = places(p, Side::queries);
  auto bytes = std::make_shared<core::Buffer<std::byte>>(o.size() * sizeof(float));
  core::encode(o.span(), core::Dtype::fp32, bytes->span());
  subject.outputs.emplace("o", bytes);
  return subject;
}

/// All of o right but for one element.
std::vector<std::uint8_t> wrong_at(const AttentionParams& p, std::int64_t batch, std::int64_t head) {
  std::vector<std::uint8_t> wrong(static_cast<std::size_t>(p.batches * p.heads * p.sq * p.d));
  wrong[static_cast<std::size_t>(op::head_place(p, Side::queries, batch, head, p.d).first)] = 1;
  return wrong;
}

TEST(CroppedAttention, holds_the_worst_head_and_another_one_of_its_sequence) {
  for (const char* layout : {"bshd", "sbhd", "bhsd"}) {
    const AttentionParams p = shape(layout);
    const std::optional<Subject> part = cropped_attention(attention(p), "o", wrong_at(p, 2, 4));
    ASSERT_TRUE(part.has_value()) << layout;
    const auto smaller = op::from_params<AttentionParams>(part->c.params);
    EXPECT_EQ(smaller.batches, 1);
    EXPECT_EQ(smaller.heads, 2);
    const std::vector<op::Port> ports = part->c.op->ports(part->c.params, *part->c.mode);
    const prepare::SharedDoubles k = part->inputs.of(op::port_named(ports, "k"));
    const core::Buffer<double> o = delivered_numbers(*part, "o");
    for (const auto& [index, head] : {std::pair{0, 1}, {1, 4}}) {
      const op::HeadPlace query = op::head_place(smaller, Side::queries, 0, index, p.d);
      const op::HeadPlace key = op::head_place(smaller, Side::keys, 0, index, p.d);
      EXPECT_EQ(o[static_cast<std::size_t>(query.first + 3 * query.stride + 1)], 2000 + 100 * head + 31) << layout;
      EXPECT_EQ((*k)[static_cast<std::size_t>(key.first + 4 * key.stride)], 2000 + 100 * head + 40) << layout;
    }
  }
}

TEST(CroppedAttention, keeps_all_heads_where_queries_share_keys) {
  AttentionParams p = shape("bshd");
  p.kv_heads = 3;
  const std::optional<Subject> part = cropped_attention(attention(p), "o", wrong_at(p, 1, 0));
  ASSERT_TRUE(part.has_value());
  const auto smaller = op::from_params<AttentionParams>(part->c.params);
  EXPECT_EQ(smaller.batches, 1);
  EXPECT_EQ(smaller.heads, 6);
  EXPECT_EQ(smaller.kv_heads, 3);
  p.batches = 1;
  EXPECT_FALSE(cropped_attention(attention(p), "o", wrong_at(p, 0, 0)).has_value()) << "nothing to leave out";
}

}  // namespace
}  // namespace numcheck::diagnose
