// Elements of a file's tensor as numbers and bytes.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "data/file_format.hpp"
#include "data/tensor_file.hpp"
#include "tests/unit/data/tensor_files.hpp"

namespace numcheck::data {
namespace {

/// A tensor in memory, of a format that the file spells so.
FileTensor tensor_of(std::string_view bytes, std::string_view description, std::vector<std::int64_t> shape) {
  const NpyFormat found = npy_format(description);
  return {.name = "x",
          .format = std::string(description),
          .kind = found.format.kind,
          .element_bits = found.format.bits,
          .dtype = found.format.dtype,
          .shape = std::move(shape),
          .column_major = false,
          .bytes = std::as_bytes(std::span(bytes))};
}

std::string refusal(const FileTensor& tensor) {
  try {
    (void)values_of(tensor);
  } catch (const core::UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(TensorValues, what_is_not_numbers_is_refused_with_its_name) {
  EXPECT_EQ(refusal(tensor_of("1234", "|V2", {2})),
            "tensor \"x\" (|V2): its bytes may be of any format; say which, for example bf16");
  EXPECT_EQ(refusal(tensor_of("12345678", "<c8", {1})),
            "tensor \"x\" (<c8): complex numbers are not read; save real and imaginary parts as tensors of their own");
  EXPECT_EQ(
      refusal(tensor_of("1234567812345678", "<f16", {1})),
      "tensor \"x\" (<f16): this format is not read; convert it to one of at least its precision, for example F32");
}

TEST(TensorValues, sizes_must_agree_to_read_as_another_format) {
  const FileTensor words = tensor_of("1234", "<u2", {2});
  try {
    (void)read_as(words, core::Dtype::fp8_e4m3);
    FAIL();
  } catch (const core::UsageError& error) {
    EXPECT_STREQ(error.what(), "tensor \"x\" (<u2): its elements have 16 bits and cannot be fp8_e4m3, which has 8");
  }
  const std::string codes = bytes_of<std::uint16_t>({0x3FC0, 0xC000});
  for (const char* type : {"<u2", "<i2", "|V2", "<f2"}) {
    EXPECT_EQ(numbers_of(read_as(tensor_of(codes, type, {2}), core::Dtype::bf16)), std::vector<double>({1.5, -2}))
        << type;
  }
}

TEST(TensorValues, integers_keep_their_value_and_any_byte_but_zero_is_true) {
  const auto numbers = [](const std::string& bytes, const char* type) {
    return numbers_of(tensor_of(bytes, type, {static_cast<std::int64_t>(2)}));
  };
  EXPECT_EQ(numbers(bytes_of<std::int8_t>({-128, 127}), "|i1"), std::vector<double>({-128, 127}));
  EXPECT_EQ(numbers(bytes_of<std::uint8_t>({0, 255}), "|u1"), std::vector<double>({0, 255}));
  EXPECT_EQ(numbers(bytes_of<std::int16_t>({-32768, 32767}), "<i2"), std::vector<double>({-32768, 32767}));
  EXPECT_EQ(numbers(bytes_of<std::uint16_t>({1, 65535}), "<u2"), std::vector<double>({1, 65535}));
  EXPECT_EQ(numbers(bytes_of<std::int32_t>({-5, 7}), "<i4"), std::vector<double>({-5, 7}));
  EXPECT_EQ(numbers(bytes_of<std::uint32_t>({1, 4294967295U}), "<u4"), std::vector<double>({1, 4294967295.0}));
  EXPECT_EQ(numbers(bytes_of<std::int64_t>({-(std::int64_t{1} << 53), 3}), "<i8"), std::vector<double>({-0x1p53, 3}));
  EXPECT_EQ(numbers(bytes_of<std::uint64_t>({~std::uint64_t{0}, 3}), "<u8"), std::vector<double>({0x1p64, 3}));
  EXPECT_EQ(numbers(bytes_of<std::uint8_t>({0, 2}), "|b1"), std::vector<double>({0, 1}));
}

TEST(TensorValues, bytes_may_be_anywhere_in_memory) {
  const std::string bytes = "?" + bytes_of({1.5, -2.0, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(numbers_of(tensor_of(std::string_view(bytes).substr(1), "<f8", {3})),
            std::vector<double>({1.5, -2, std::numeric_limits<double>::infinity()}));
  const std::string words = "?" + bytes_of<std::int64_t>({-3});
  EXPECT_EQ(numbers_of(tensor_of(std::string_view(words).substr(1), "<i8", {})), std::vector<double>({-3}));
}

/// The place of an element of a column-major tensor in the file, from its place in row-major order, index by index.
std::size_t file_place(std::size_t row_major, const std::vector<std::int64_t>& shape) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = row_major % static_cast<std::size_t>(shape[i]);
    row_major /= static_cast<std::size_t>(shape[i]);
  }
  std::size_t place = 0;
  for (std::size_t i = shape.size(); i-- > 0;) {
    place = place * static_cast<std::size_t>(shape[i]) + index[i];
  }
  return place;
}

TEST(TensorValues, column_major_tensors_of_any_shape_become_row_major) {
  for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{2, 3},
                                                                                       {65, 1025},
                                                                                       {200, 3},
                                                                                       {3, 4000},
                                                                                       {2, 3, 4},
                                                                                       {1, 5, 1, 7, 1},
                                                                                       {3, 1, 2, 5, 4},
                                                                                       {70, 2, 70},
                                                                                       {2, 1000, 2}}) {
    std::vector<std::int32_t> numbers(
        static_cast<std::size_t>(std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
    std::iota(numbers.begin(), numbers.end(), 0);
    FileTensor tensor = tensor_of({reinterpret_cast<const char*>(numbers.data()), 4 * numbers.size()}, "<i4", shape);
    tensor.column_major = true;
    const std::vector<double> values = numbers_of(tensor);
    const std::vector<std::byte> bytes = dense_bytes(tensor);
    ASSERT_EQ(values.size(), numbers.size());
    ASSERT_EQ(bytes.size(), 4 * numbers.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::int32_t code = 0;
      std::memcpy(&code, bytes.data() + 4 * i, sizeof code);
      ASSERT_EQ(code, static_cast<std::int32_t>(file_place(i, shape))) << i;
      ASSERT_EQ(values[i], code) << i;
    }
  }
}

TEST(TensorValues, long_tensors_are_read_to_the_end) {
  std::vector<std::uint16_t> codes(300'001);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::uint16_t>(i * 7);
  }
  const FileTensor tensor = read_as(
      tensor_of({reinterpret_cast<const char*>(codes.data()), 2 * codes.size()}, "|V2", {300'001}), core::Dtype::bf16);
  const std::vector<double> values = numbers_of(tensor);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const double expected = core::decode(codes[i], core::Dtype::bf16);
    ASSERT_TRUE(values[i] == expected || (std::isnan(values[i]) && std::isnan(expected))) << i;
  }
}

TEST(TensorValues, empty_column_major_tensors_have_nothing) {
  FileTensor tensor = tensor_of("", "<f4", {2, 0, 3});
  tensor.column_major = true;
  EXPECT_TRUE(values_of(tensor).empty());
  EXPECT_TRUE(dense_bytes(tensor).empty());
}

}  // namespace
}  // namespace numcheck::data
