// Every distribution: the same bits whatever the instruction set, the range and the number of threads; FP32 values.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "core/rng.hpp"
#include "data/distribution.hpp"
#include "data/generate_range.hpp"

namespace numcheck::test {
namespace {

constexpr core::StreamId kStream{20250101, 0x1234, 0x5678};
constexpr core::Isa kIsas[] = {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512};

std::vector<double> values_of(const data::Distribution& distribution, std::uint64_t first, std::size_t count,
                              const core::StreamId& stream = kStream) {
  std::vector<double> values(count, -77);
  data::generate(distribution, stream, first, values);
  return values;
}

core::Digest digest(const std::vector<double>& values) {
  return core::digest_of(std::as_bytes(std::span(values)));
}

class Generator : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] data::Distribution distribution() const { return data::make_distribution(GetParam()); }
};

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const data::DistributionInfo& info : data::all_distributions()) {
    names.emplace_back(info.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, Generator, testing::ValuesIn(all_names()), [](const auto& given) { return given.param; });

/// Digests of the first version of the format. A change here changes the inputs of every case: it needs a new format
/// number and a line in CHANGELOG, not a new expectation.
TEST_P(Generator, golden_digest) {
  static const std::map<std::string, std::string> kGolden = {
      {"normal", "f06c9d1276e6113deb9c376682afb6d4"},     {"positive", "bb0f31840205595bc7ad2a674359c615"},
      {"uniform", "dff6233ea205dad94d56571a4c9e1943"},    {"constant", "3b857d45da4ed33d54410f2dab6831d6"},
      {"large_mean", "2d4c96421a1c31b6a982b8968774f95f"}, {"log_uniform", "aacffb8a9debe9d7b37b3a6d4d3a3f68"},
      {"outliers", "a7deeb7b202605ef2ef7f9b2270b1f82"},   {"exact", "e2154b9e4828e3fc1c4f1a3984bace95"},
      {"ties", "b8b198dd86f55ac4ec535d9aa7e576f7"},       {"specials", "731485c8d26f1119877711a49a431d67"},
      {"structured", "7c33a4b9b93c51f53743ce75636d9ea5"}, {"patterns", "6cc30806b43aeee9e57c727faaa0b941"},
      {"rows", "448d1ba7db46a9d2618af400e408fcc7"},       {"signs", "d92f25dd7fecd749831ac674674d1bb1"},
      {"one_hot", "490102498a48d25cf17331465eb1ae86"},    {"activations", "77099d0a37cebf8cca03de77e7284b44"},
  };
  const std::string got = digest(values_of(distribution(), 1000, 100000)).hex();
  ASSERT_TRUE(kGolden.contains(GetParam())) << got;
  EXPECT_EQ(got, kGolden.at(GetParam()));
}

TEST_P(Generator, same_bits_on_every_set) {
  const core::Isa before = core::active_isa();
  core::force_isa(core::Isa::baseline);
  const core::Digest expected = digest(values_of(distribution(), 77, 30000));
  for (const core::Isa isa : kIsas) {
    if (core::force_isa(isa) == isa) {
      EXPECT_EQ(digest(values_of(distribution(), 77, 30000)), expected) << core::isa_name(isa);
    }
  }
  core::force_isa(before);
}

TEST_P(Generator, any_range_is_a_slice_of_the_whole) {
  const std::size_t size = 6000;
  const std::vector<double> whole = values_of(distribution(), 0, size);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::size_t first = random() % size;
    const std::size_t count = std::min<std::size_t>(random() % (i % 2 == 0 ? 40 : 3000), size - first);
    const std::vector<double> part = values_of(distribution(), first, count);
    ASSERT_EQ(digest(part), digest({whole.begin() + static_cast<std::ptrdiff_t>(first),
                                    whole.begin() + static_cast<std::ptrdiff_t>(first + count)}))
        << first << " + " << count;
  }
}

TEST_P(Generator, far_elements_are_slices_too) {
  const std::uint64_t far = (std::uint64_t{1} << 42) - 300;  // the block index crosses 32 bits within the range
  const std::vector<double> whole = values_of(distribution(), far, 1000);
  const std::vector<double> part = values_of(distribution(), far + 299, 400);
  for (std::size_t i = 0; i < part.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint64_t>(part[i]), std::bit_cast<std::uint64_t>(whole[299 + i])) << i;
  }
}

TEST_P(Generator, same_bits_with_any_threads) {
  const std::vector<double> expected = values_of(distribution(), 0, 50000);
  for (const int threads : {1, 2, 5}) {
    core::set_thread_count(threads);
    std::vector<double> values(expected.size());
    core::parallel_chunks(values.size(), 777, [&](std::size_t, std::size_t begin, std::size_t end) {
      data::generate(distribution(), kStream, begin, std::span(values).subspan(begin, end - begin));
    });
    EXPECT_EQ(digest(values), digest(expected)) << threads;
  }
}

TEST_P(Generator, values_are_fp32) {
  for (const double value : values_of(distribution(), 0, 20000)) {
    ASSERT_TRUE(std::isnan(value) || static_cast<double>(static_cast<float>(value)) == value) << value;
  }
}

TEST_P(Generator, streams_differ) {
  const std::vector<double> values = values_of(distribution(), 0, 4096);
  for (const core::StreamId& other :
       {core::StreamId{20250102, 0x1234, 0x5678}, core::StreamId{20250101, 0x1235, 0x5678},
        core::StreamId{20250101, 0x1234, 0x5679},
        core::StreamId{20250101 + (std::uint64_t{1} << 32), 0x1234, 0x5678}}) {
    const std::vector<double> others = values_of(distribution(), 0, 4096, other);
    EXPECT_EQ(digest(others) == digest(values),
              GetParam() == "constant" || GetParam() == "patterns" || GetParam() == "one_hot");
  }
}

TEST_P(Generator, wrong_parameters_are_refused) {
  data::Distribution wrong = distribution();
  wrong.params.emplace_back(std::string("surplus"));
  std::vector<double> out(4);
  EXPECT_THROW(data::generate(wrong, kStream, 0, out), core::InternalError);
  if (!distribution().params.empty()) {
    wrong.params = {};
    EXPECT_THROW(data::generate(wrong, kStream, 0, out), core::InternalError);
    wrong = distribution();
    wrong.params[0] = op::Value(true);
    EXPECT_THROW(data::generate(wrong, kStream, 0, out), core::InternalError);
  }
}

TEST(Distributions, table_is_complete) {
  EXPECT_EQ(data::all_distributions().size(), 16U);
  for (const data::DistributionInfo& info : data::all_distributions()) {
    EXPECT_EQ(data::find_distribution(info.name), &info);
    EXPECT_FALSE(info.doc.empty());
    for (const op::Field& field : info.fields()) {
      EXPECT_FALSE(field.doc.empty()) << info.name << ' ' << field.name;
      EXPECT_FALSE(field.tag.empty()) << info.name << ' ' << field.name;
    }
  }
  EXPECT_EQ(data::find_distribution("gaussian"), nullptr);
  EXPECT_THROW((void)data::make_distribution("gaussian"), core::InternalError);
  std::vector<double> out(1);
  EXPECT_THROW(data::generate({"gaussian", {}}, kStream, 0, out), core::InternalError);
}

/// The vectors' words are those of the scalar generator, in the documented order.
TEST(Words, are_those_of_philox) {
  const data::WordStream stream{0x0123456789ABCDEF, 0xAAAA5555, 0x00FF00FF, 3};
  for (const core::Isa isa : kIsas) {
    if (core::force_isa(isa) != isa) {
      continue;
    }
    for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 34) - 128, std::uint64_t{123457}}) {
      std::vector<std::uint32_t> words(1000);
      data::generate_words(stream, first, words);
      for (std::size_t i = 0; i < words.size(); ++i) {
        const std::uint64_t element = first + i;
        const std::uint64_t block = element / 256 * 64 + element % 64;
        const core::PhiloxCounter expected =
            core::philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32) + (3U << 24),
                              0xAAAA5555, 0x00FF00FF},
                             {0x89ABCDEF, 0x01234567});
        ASSERT_EQ(words[i], expected[element % 256 / 64]) << core::isa_name(isa) << ' ' << element;
      }
    }
  }
}

}  // namespace
}  // namespace numcheck::test
