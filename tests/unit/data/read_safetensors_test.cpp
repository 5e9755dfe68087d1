// Safetensors files: whatever a header claims, it is read or refused with a sentence.
#include <array>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "data/file_format.hpp"
#include "data/safetensors.hpp"
#include "data/tensor_file.hpp"
#include "tests/unit/data/tensor_files.hpp"

namespace numcheck::data {
namespace {

using Shape = std::vector<std::int64_t>;

/// A header with one tensor.
std::string tensor(std::string_view format, std::string_view shape, std::string_view offsets) {
  return R"({"w":{"dtype":")" + std::string(format) + R"(","shape":)" + std::string(shape) + R"(,"data_offsets":)" +
         std::string(offsets) + "}}";
}

std::string of_header(std::string_view header, std::size_t data = 0) {
  return complaint(safetensors_text(header, std::string(data, '\0')));
}

TEST(ReadSafetensors, lengths_of_the_header_that_lie_are_refused) {
  EXPECT_EQ(complaint(safetensors_text("{}", "", 3)),
            "its header would have 3 bytes, but the file has 10 in all; is it an incomplete copy?");
  EXPECT_EQ(complaint(safetensors_text("{}", "", ~std::uint64_t{0})),
            "its header would have 18446744073709551615 bytes, but the format allows 100000000");
  EXPECT_EQ(complaint(safetensors_text("{}", "", 100'000'001)),
            "its header would have 100000001 bytes, but the format allows 100000000");
  EXPECT_EQ(complaint(safetensors_text("{}  ", "", 2)), "it has 2 bytes of data, but its tensors take 0");
  EXPECT_EQ(complaint(safetensors_text("{}", "", 1)), "its header is not JSON in UTF-8 at byte 9");
}

TEST(ReadSafetensors, headers_that_are_not_of_the_format_are_refused) {
  EXPECT_EQ(of_header("{"), "its header is not JSON in UTF-8 at byte 9");
  EXPECT_EQ(of_header("{}{}"), "its header is not JSON in UTF-8 at byte 10");
  EXPECT_EQ(of_header(std::string_view("{}\0", 3)), "its header is not JSON in UTF-8 at byte 10");
  EXPECT_EQ(of_header("{\"\xff\":{}}"), "its header is not JSON in UTF-8 at byte 10");
  EXPECT_EQ(of_header(R"({"w":1})"), R"("w" is not an object)");
  EXPECT_EQ(of_header(R"({"w":[]})"), R"("w" is not an object)");
  EXPECT_EQ(of_header(R"({"w":{}})"), R"(tensor "w" has no dtype)");
  EXPECT_EQ(of_header(R"({"w":{"dtype":"F32"}})"), R"(tensor "w" has no shape)");
  EXPECT_EQ(of_header(R"({"w":{"dtype":"F32","shape":[]}})"), R"(tensor "w" has no data_offsets of two numbers)");
  EXPECT_EQ(of_header(tensor("F32", "[]", "[4]")), R"(tensor "w" has no data_offsets of two numbers)");
  EXPECT_EQ(of_header(tensor("F32", "[]", "[0,4,4]"), 4),
            R"(tensor "w": "data_offsets" must be two whole numbers: where its bytes begin and end)");
  EXPECT_EQ(of_header(R"({"w":{"dtype":3}})"), R"(tensor "w": "dtype" must be a text, such as "BF16")");
  EXPECT_EQ(of_header(R"({"w":{"dtype":"F32","dtype":"F32"}})"), R"(tensor "w" has dtype twice)");
  EXPECT_EQ(of_header(R"({"w":{"strides":[1]}})"),
            R"(tensor "w": "strides" is not a member of the format: dtype, shape and data_offsets are)");
}

TEST(ReadSafetensors, deep_nesting_is_refused_at_the_first_level_too_many) {
  const std::string deep(1'000'000, '[');
  EXPECT_EQ(of_header(R"({"w":{"shape":)" + deep),
            R"(tensor "w": "shape" must be a list of at most 64 whole numbers, none negative)");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += R"({"w":)";
  }
  EXPECT_EQ(of_header(objects), R"(tensor "w": "w" is not a member of the format: dtype, shape and data_offsets are)");
}

TEST(ReadSafetensors, shapes_that_no_file_holds_are_refused) {
  constexpr std::string_view kMust = R"(tensor "w": "shape" must be a list of at most 64 whole numbers, none negative)";
  for (const char* shape :
       {"[-1]", "[1.0]", "[\"1\"]", "[null]", "[true]", "[18446744073709551616]", "[[1]]", "[{}]"}) {
    EXPECT_EQ(of_header(tensor("F32", shape, "[0,4]"), 4), kMust) << shape;
  }
  std::string ones = "[1";
  for (int i = 0; i < 64; ++i) {
    ones += ",1";
  }
  EXPECT_EQ(of_header(tensor("F32", ones + "]", "[0,4]"), 4), kMust);
  constexpr std::string_view kLarge = R"(tensor "w" has more elements than any file holds: )";
  for (const char* shape : {"4294967296 x 4294967296", "18446744073709551615", "0 x 9223372036854775808",
                            "4294967296 x 4294967296 x 0", "9223372036854775807 x 2"}) {
    std::string list = shape;
    for (std::size_t at = list.find(" x "); at != std::string::npos; at = list.find(" x ")) {
      list.replace(at, 3, ",");
    }
    EXPECT_EQ(of_header(tensor("F32", "[" + list + "]", "[0,0]")), std::string(kLarge) + shape);
  }
}

TEST(ReadSafetensors, places_that_do_not_fit_are_refused) {
  EXPECT_EQ(of_header(tensor("F32", "[3,4]", "[0,40]"), 40),
            R"(tensor "w" has 40 bytes, but must have 48 bytes: 3 x 4 of F32)");
  EXPECT_EQ(of_header(tensor("F4", "[3]", "[0,2]"), 2), R"(tensor "w" has 2 bytes, but must have 12 bits: 3 of F4)");
  EXPECT_EQ(of_header(tensor("F4", "[3]", "[0,1]"), 1), R"(tensor "w" has 1 bytes, but must have 12 bits: 3 of F4)");
  EXPECT_EQ(of_header(tensor("F32", "[]", "[4,0]"), 4), R"(tensor "w" ends at byte 0, before it begins at 4)");
  EXPECT_EQ(of_header(tensor("F32", "[]", "[0,4]"), 3),
            R"(tensor "w" ends at byte 4 of the data, but the file has only 3; is it an incomplete copy?)");
  EXPECT_EQ(of_header(tensor("F32", "[]", "[0,4]"), 5), "it has 5 bytes of data, but its tensors take 4");
  EXPECT_EQ(of_header(tensor("F32", "[]", "[4,8]"), 8), "bytes 0 to 4 of its data belong to no tensor");
  EXPECT_EQ(
      of_header(tensor("U8", "[0]", "[18446744073709551615,18446744073709551615]"), 1),
      R"(tensor "w" ends at byte 18446744073709551615 of the data, but the file has only 1; is it an incomplete copy?)");
  constexpr std::string_view kTwo = R"({"v":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                                       "w":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})";
  EXPECT_EQ(of_header(kTwo, 6), R"(tensor "w" begins at byte 2 of the data, within another that ends at 4)");
  EXPECT_EQ(
      of_header(tensor("Q7", "[1]", "[0,4]"), 4),
      R"(tensor "w" has the unknown format "Q7"; formats are BOOL, F4, F6_E2M3, F6_E3M2, U8, I8, F8_E5M2, F8_E4M3, )"
      "F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, I16, U16, F16, BF16, I32, U32, F32, C64, F64, I64, U64");
}

TEST(ReadSafetensors, names_are_unique_and_shown_escaped) {
  constexpr std::string_view kTwice = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                                         "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  EXPECT_EQ(of_header(kTwice, 2), R"(two tensors have the name "a")");
  EXPECT_EQ(of_header(R"({"\u001b[2J\u202e":{}})"), R"(tensor "\x1b[2J\u{202e}" has no dtype)");
  EXPECT_LT(of_header("{\"" + std::string(1'000'000, 'n') + "\":{}}").size(), 200U);
}

TEST(ReadSafetensors, texts_are_texts) {
  EXPECT_EQ(of_header(R"({"__metadata__":{"a":1}})"), R"("a" of __metadata__ is not a text)");
  EXPECT_EQ(of_header(R"({"__metadata__":null})"), R"("__metadata__" is not an object)");
  EXPECT_EQ(of_header(R"({"__metadata__":{"a":"","a":""}})"), "its __metadata__ has a text of the same name twice");
  EXPECT_EQ(of_header(R"({"__metadata__":{},"__metadata__":{}})"), "it has __metadata__ twice");
}

TEST(ReadSafetensors, tensors_come_in_the_order_of_their_data) {
  const test::TemporaryFolder folder;
  constexpr std::string_view kHeader = R"({"b":{"data_offsets":[4,8],"shape":[2],"dtype":"F16"},
      "empty":{"dtype":"F64","shape":[3,0],"data_offsets":[4,4]},
      "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"__metadata__":{"from":"here"}}    )";
  const TensorFile file = TensorFile::open(
      folder.write("x.bin", safetensors_text(kHeader, bytes_of({1.5F}) + bytes_of<std::uint16_t>({0x3C00, 0xC000}))));
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[0].shape, Shape());
  EXPECT_EQ(numbers_of(file.tensors()[0]), std::vector<double>({1.5}));
  EXPECT_EQ(file.tensors()[1].name, "empty");
  EXPECT_EQ(file.tensors()[1].shape, Shape({3, 0}));
  EXPECT_EQ(numbers_of(file.tensors()[1]), std::vector<double>());
  EXPECT_EQ(file.tensors()[2].dtype, core::Dtype::fp16);
  EXPECT_EQ(numbers_of(file.tensors()[2]), std::vector<double>({1, -2}));
  EXPECT_EQ(file.texts().at("from"), "here");
  EXPECT_EQ(file.find("b"), &file.tensors()[2]);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(ReadSafetensors, formats_that_we_do_not_have_are_kept) {
  const test::TemporaryFolder folder;
  const TensorFile file =
      TensorFile::open(folder.write("x", safetensors_text(tensor("F6_E2M3", "[2,4]", "[0,6]"), "abcdef")));
  EXPECT_EQ(file.tensors()[0].format, "F6_E2M3");
  EXPECT_EQ(file.tensors()[0].dtype, std::nullopt);
  EXPECT_EQ(file.tensors()[0].elements(), 8U);
  EXPECT_EQ(dense_bytes(file.tensors()[0]).size(), 6U);
  EXPECT_THROW((void)values_of(file.tensors()[0]), core::UsageError);
  EXPECT_THROW((void)read_as(file.tensors()[0], core::Dtype::fp8_e4m3), core::UsageError);
}

TEST(ReadSafetensors, a_length_that_looks_like_a_pickle_is_a_length) {
  const test::TemporaryFolder folder;
  std::string header = "{}";
  header.resize(0x280, ' ');  // the first two bytes of the file are those of a pickle of protocol 2
  EXPECT_TRUE(TensorFile::open(folder.write("x", safetensors_text(header, ""))).tensors().empty());
}

TEST(ReadSafetensors, what_we_write_is_read_back) {
  const test::TemporaryFolder folder;
  const std::array<double, 2> numbers = {1.5, -2};
  for (const core::DtypeInfo& info : core::all_dtypes()) {
    std::vector<std::byte> bytes(2 * static_cast<std::size_t>(info.storage_bytes));
    core::encode(numbers, info.dtype, bytes);
    const std::vector<StoredTensor> tensors = {{"t", safetensors_format(info.dtype), {1, 2}, bytes}};
    write_safetensors(folder.path() / "x", tensors, {{"case", "gemm \"1\""}});
    const TensorFile file = TensorFile::open(folder.path() / "x");
    ASSERT_EQ(file.tensors().size(), 1U);
    EXPECT_EQ(file.tensors()[0].format, tensors[0].format);
    EXPECT_EQ(file.tensors()[0].shape, Shape({1, 2}));
    EXPECT_EQ(dense_bytes(file.tensors()[0]), bytes) << info.name;
    EXPECT_EQ(file.texts().at("case"), "gemm \"1\"");
    std::array<double, 2> expected{};
    core::decode(bytes, info.dtype, expected);
    EXPECT_EQ(numbers_of(read_as(file.tensors()[0], info.dtype)),
              std::vector<double>(expected.begin(), expected.end()));
  }
}

}  // namespace
}  // namespace numcheck::data
