// Strings, digests, stream words and the generator's known answers.
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/isa.hpp"
#include "core/rng.hpp"
#include "core/strings.hpp"

namespace numcheck::test {
namespace {

template <class Call>
std::string usage_error(const Call& call) {
  try {
    call();
  } catch (const core::UsageError& error) {
    EXPECT_EQ(error.exit_code(), core::ExitCode::usage);
    return error.what();
  }
  return "no error";
}

TEST(EditDistance, counts_edits_and_transpositions) {
  EXPECT_EQ(core::edit_distance("", ""), 0U);
  EXPECT_EQ(core::edit_distance("", "abc"), 3U);
  EXPECT_EQ(core::edit_distance("abc", ""), 3U);
  EXPECT_EQ(core::edit_distance("bf61", "bf16"), 1U);
  EXPECT_EQ(core::edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(core::edit_distance("ca", "abc"), 3U);
  EXPECT_EQ(core::edit_distance("colour", "color"), 1U);
}

TEST(NearestName, suggests_within_two_edits_or_a_third) {
  constexpr std::array<std::string_view, 5> kNames = {"fp32", "tf32", "bf16", "fp8_e4m3", "layernorm_fwd"};
  EXPECT_EQ(core::nearest_name("bf61", kNames), "bf16");
  EXPECT_EQ(core::nearest_name("FP8_E4M3", kNames), "fp8_e4m3");
  EXPECT_EQ(core::nearest_name("layer_norm_forw", kNames), "layernorm_fwd");
  EXPECT_EQ(core::nearest_name("Layern", kNames), "layernorm_fwd") << "how a name begins";
  EXPECT_EQ(core::nearest_name("attention", kNames), "");
  EXPECT_EQ(core::nearest_name("", kNames), "");
  EXPECT_EQ(core::nearest_name("x", std::span<const std::string_view>{}), "");
  constexpr std::array<std::string_view, 3> kLetters = {"m", "n", "kk"};
  EXPECT_EQ(core::nearest_name("k", kLetters), "kk");
  EXPECT_EQ(core::nearest_name("x", kLetters), "");
}

TEST(Shortest, reads_back) {
  EXPECT_EQ(core::shortest(0.1), "0.1");
  EXPECT_EQ(core::shortest(1), "1");
  EXPECT_EQ(core::shortest(-0.0), "-0");
  EXPECT_EQ(core::shortest(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(core::shortest(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(core::shortest(-std::numeric_limits<double>::quiet_NaN()), "nan");
  for (const double value : {1.0 / 3, 1e300, -5e-324, 1e22, 123456789.125, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(std::strtod(core::shortest(value).c_str(), nullptr), value);
  }
}

TEST(HumanBytes, chooses_the_unit) {
  EXPECT_EQ(core::human_bytes(0), "0 B");
  EXPECT_EQ(core::human_bytes(1023), "1023 B");
  EXPECT_EQ(core::human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(core::human_bytes(12897485), "12.3 MiB");
  EXPECT_EQ(core::human_bytes((1U << 20) - 1), "1.0 MiB");
  EXPECT_EQ(core::human_bytes(~std::uint64_t{0}), "16.0 EiB");
}

TEST(ParseBytes, accepts_numbers_with_units) {
  EXPECT_EQ(core::parse_bytes("0", "--memory"), 0U);
  EXPECT_EQ(core::parse_bytes("1000", "--memory"), 1000U);
  EXPECT_EQ(core::parse_bytes("64M", "--memory"), std::uint64_t{64} << 20);
  EXPECT_EQ(core::parse_bytes("2GiB", "--memory"), std::uint64_t{2} << 30);
  EXPECT_EQ(core::parse_bytes("2gb", "--memory"), 2000000000U);
  EXPECT_EQ(core::parse_bytes("1.5K", "--memory"), 1536U);
  EXPECT_EQ(core::parse_bytes("7B", "--memory"), 7U);
  EXPECT_EQ(core::parse_bytes("18446744073709551615", "--memory"), ~std::uint64_t{0});
  EXPECT_EQ(core::parse_bytes("9007199254740993", "--memory"), 9007199254740993U);
}

TEST(ParseBytes, rejects_everything_else) {
  for (const char* text : {"", "M", "-1", "+1", "1 M", " 1", "1e3", "0x10", "1..5M", ".5M", "5.M", "1.5", "1.5B", "12Q",
                           "inf", "nan", "1MM", "M1", "1,5M"}) {
    const std::string message = usage_error([&] { (void)core::parse_bytes(text, "--memory"); });
    EXPECT_EQ(message.rfind("--memory: \"", 0), 0U) << text << ": " << message;
    EXPECT_NE(message.find(text), std::string::npos);
  }
  for (const char* text : {"18446744073709551616", "16777216T", "99999999999999999999999999", "20000P", "20000.5P"}) {
    EXPECT_NE(usage_error([&] { (void)core::parse_bytes(text, "--memory"); }).find("64 bits"), std::string::npos)
        << text;
  }
}

TEST(ParseDuration, accepts_numbers_with_units) {
  EXPECT_EQ(core::parse_duration_s("500ms", "--timeout"), 0.5);
  EXPECT_EQ(core::parse_duration_s("60s", "--timeout"), 60);
  EXPECT_EQ(core::parse_duration_s("10m", "--timeout"), 600);
  EXPECT_EQ(core::parse_duration_s("1.5h", "--timeout"), 5400);
  EXPECT_EQ(core::parse_duration_s("0s", "--timeout"), 0);
}

TEST(ParseDuration, rejects_everything_else) {
  for (const char* text : {"", "s", "-1s", "+1s", "1 s", "1e3s", "1d", "infs", "nan", "1..5s", ".5s", "5.s", "1ss"}) {
    const std::string message = usage_error([&] { (void)core::parse_duration_s(text, "--timeout"); });
    EXPECT_EQ(message.rfind("--timeout: \"", 0), 0U) << text << ": " << message;
  }
  EXPECT_NE(usage_error([] { (void)core::parse_duration_s("60", "--timeout"); }).find("60s"), std::string::npos);
  const std::string endless(400, '9');
  EXPECT_NE(usage_error([&] { (void)core::parse_duration_s(endless + "h", "--timeout"); }), "no error");
}

TEST(Split, keeps_empty_pieces) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(core::split("a,b,,c", ','), (Pieces{"a", "b", "", "c"}));
  EXPECT_EQ(core::split("", ','), (Pieces{""}));
  EXPECT_EQ(core::split(",", ','), (Pieces{"", ""}));
  EXPECT_EQ(core::split("abc", ','), (Pieces{"abc"}));
}

/// Values of XXH3_128bits that its authors publish (xxHash, tests/sanity_test_vectors.h) for the empty input.
TEST(DigestOf, known_answer_and_text) {
  EXPECT_EQ(core::digest_of(std::string_view{}).hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(core::digest_of(std::string_view{}).short_hex(), "99aa06d3");
  const std::array<std::byte, 3> bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  EXPECT_EQ(core::digest_of(bytes), core::digest_of("abc"));
  EXPECT_NE(core::digest_of("abc"), core::digest_of("abd"));
  EXPECT_EQ((core::Digest{1, 0xAB}).hex(), "000000000000000100000000000000ab");
  EXPECT_LT((core::Digest{1, 9}), (core::Digest{2, 0}));
}

/// Known answers of Random123 (D. E. Shaw Research), kat_vectors, philox4x32 10 rounds.
TEST(Philox, known_answers) {
  using core::PhiloxCounter;
  EXPECT_EQ(core::philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kOnes = 0xFFFFFFFF;
  EXPECT_EQ(core::philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(core::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

/// FNV-1a test vectors of Fowler, Noll and Vo.
TEST(StreamWord, is_fixed) {
  EXPECT_EQ(core::stream_word(""), 0x811c9dc5U);
  EXPECT_EQ(core::stream_word("a"), 0xe40c292cU);
  EXPECT_EQ(core::stream_word("foobar"), 0xbf9cf968U);
}

TEST(IsaDispatch, forcing_is_limited_to_what_the_processor_supports) {
  const core::Isa before = core::active_isa();
  if (const char* wanted = std::getenv("TE_NUMCHECK_ISA")) {
    const bool supported = std::string_view(wanted) == "baseline" || core::is_supported(core::Isa::avx2);
    EXPECT_TRUE(core::isa_name(before) == wanted || !supported) << wanted;
  }
  std::set<std::string_view> names;
  for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
    names.insert(core::isa_name(isa));
    const core::Isa active = core::active_isa();
    EXPECT_EQ(core::force_isa(isa), core::is_supported(isa) ? isa : active);
    EXPECT_EQ(core::active_isa(), core::is_supported(isa) ? isa : active);
  }
  EXPECT_EQ(names, (std::set<std::string_view>{"baseline", "avx2", "avx512"}));
  EXPECT_TRUE(core::is_supported(core::Isa::baseline));
  EXPECT_EQ(core::force_isa(before), before);
}

}  // namespace
}  // namespace numcheck::test
