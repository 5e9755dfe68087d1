// .npy files: whatever a header claims, it is read or refused with a sentence.
#include <gtest/gtest.h>

#include "data/tensor_file.hpp"
#include "tests/unit/data/tensor_files.hpp"

namespace numcheck::data {
namespace {

using Shape = std::vector<std::int64_t>;

std::string header(std::string_view description, std::string_view shape, std::string_view column_major = "False") {
  return "{'descr': " + std::string(description) + ", 'fortran_order': " + std::string(column_major) +
         ", 'shape': " + std::string(shape) + ", }    \n";
}

std::string of(std::string_view text, std::size_t data = 0) {
  return complaint(npy_text(text, std::string(data, '\0')), "x.npy");
}

TEST(ReadNpy, starts_and_lengths_that_lie_are_refused) {
  EXPECT_EQ(complaint("\x93NUMPY"), "it ends within its first line; is it an incomplete copy?");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\1\0\0", 9)), "it ends within its first line; is it an incomplete copy?");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\2\0\0\0", 10)),
            "its header would have 0 bytes, but the file has 10 in all; is it an incomplete copy?");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\4\0\0\0\0\0", 12)),
            "it has version 4.0 of .npy, but there are 1.0, 2.0 and 3.0");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\1\1\0\0\0\0", 12)),
            "it has version 1.1 of .npy, but there are 1.0, 2.0 and 3.0");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\1\0\xff\xff{}", 12)),
            "its header would have 65535 bytes, but the file has 12 in all; is it an incomplete copy?");
  EXPECT_EQ(complaint(std::string("\x93NUMPY\2\0\xff\xff\xff\xff{}", 14)),
            "its header would have 4294967295 bytes, but the file has 14 in all; is it an incomplete copy?");
  EXPECT_EQ(complaint(npy_text(std::string(2'000'000, ' '), "", 2)),
            "its header has 2000000 bytes; those of arrays of numbers have some hundred");
}

TEST(ReadNpy, headers_that_numpy_does_not_write_are_refused) {
  constexpr std::string_view kNot = "its header is not as NumPy writes it: expected ";
  const auto refused = [&](std::string_view text) {
    const std::string words = of(text, 4);
    EXPECT_TRUE(words.starts_with(kNot)) << words;
    return words.substr(std::min(kNot.size(), words.size()));
  };
  EXPECT_EQ(refused(""), "'{' at byte 10");
  EXPECT_EQ(refused("[]"), "'{' at byte 10");
  EXPECT_EQ(refused("{'descr"), "a string in quotes, without backslashes, at byte 11");
  EXPECT_EQ(refused("{'des\\x63r': 1}"), "a string in quotes, without backslashes, at byte 11");
  EXPECT_EQ(refused("{1: 2}"), "a string in quotes at byte 11");
  EXPECT_EQ(refused("{'descr' '<f4'}"), "':' at byte 19");
  EXPECT_EQ(refused("{'order': 1}"), "one of 'descr', 'fortran_order' and 'shape' at byte 19");
  EXPECT_EQ(refused("{'shape': (), 'shape': ()}"), "no member a second time, but one ends at byte 35");
  EXPECT_EQ(refused("{'fortran_order': 0}"), "True or False at byte 28");
  EXPECT_EQ(refused("{'shape': ()"), "'}' at byte 22");
  EXPECT_EQ(refused("{'shape': ()} x"), "nothing but spaces at byte 24");
  EXPECT_EQ(refused("{'shape': 3}"), "'(' at byte 20");
  EXPECT_EQ(refused("{'shape': (3)}"), "',' after the only dimension at byte 22");
  EXPECT_EQ(refused("{'shape': (3,-1)}"), "a dimension from 0 to 2^63 - 1 at byte 23");
  EXPECT_EQ(refused("{'shape': (9223372036854775808,)}"), "a dimension from 0 to 2^63 - 1 at byte 21");
  EXPECT_EQ(refused("{'shape': (3, None)}"), "a whole number at byte 24");
  EXPECT_EQ(refused("{'shape': (1, 2.5)}"), "')' at byte 25");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) {
    many += "1,";
  }
  EXPECT_EQ(refused("{'shape': " + many + ")}"), "at most 64 dimensions, but there is another at byte 149");
  EXPECT_EQ(of("{}"), "its header has no descr");
  EXPECT_EQ(of("{'descr': '<f4'}"), "its header has no fortran_order");
  EXPECT_EQ(of("{'descr': '<f4', 'fortran_order': True}"), "its header has no shape");
}

TEST(ReadNpy, sizes_that_do_not_fit_are_refused) {
  EXPECT_EQ(of(header("'<f4'", "(3, 4)"), 47),
            "its array takes 48 bytes, 3 x 4 of <f4, but the file has 47 of data; is it an incomplete copy?");
  EXPECT_EQ(of(header("'<f4'", "()"), 8),
            "its array takes 4 bytes, a single number of <f4, but the file has 8 of data; save one array to a file");
  constexpr std::string_view kLarge = "its shape has more elements than any file holds: ";
  EXPECT_EQ(of(header("'<f4'", "(4294967296, 4294967296)")), std::string(kLarge) + "4294967296 x 4294967296");
  EXPECT_EQ(of(header("'<f4'", "(0, 9223372036854775807)")), std::string(kLarge) + "0 x 9223372036854775807");
  EXPECT_EQ(of(header("'|V2147483647'", "(72057594037927936,)")), std::string(kLarge) + "72057594037927936");
}

TEST(ReadNpy, kinds_that_are_not_read_come_with_what_converts_them) {
  EXPECT_EQ(of(header("'>f4'", "(1,)"), 4),
            "its numbers are big-endian, and only little-endian ones are read; Python converts it:\nimport numpy\n"
            "a = numpy.load(\"FOLDER/x.npy\")\nnumpy.save(\"FOLDER/x-converted.npy\", "
            "a.astype(a.dtype.newbyteorder(\"<\")))");
  EXPECT_EQ(of(header("'|O'", "(1,)"), 4),
            "it is an array of Python objects, a pickle, which can run any code when it is read; if they are numbers, "
            "Python converts it:\nimport numpy\na = numpy.load(\"FOLDER/x.npy\", allow_pickle=True)\n"
            "numpy.save(\"FOLDER/x-converted.npy\", a.astype(\"<f8\"))");
  EXPECT_EQ(of(header("[('a', '<f4'), ('b', '<i2')]", "(1,)"), 6),
            "it is a structured array; save each field as an array of its own, for example:\nimport numpy\n"
            "numpy.save(\"FIELD.npy\", numpy.load(\"FOLDER/x.npy\")[\"FIELD\"])");
  EXPECT_EQ(of(header("'<U5'", "()"), 20), "it is an array of text, not of numbers");
  EXPECT_EQ(of(header("'<M8[ns]'", "()"), 8), "it is an array of dates or times; convert it with astype(\"<i8\")");
}

TEST(ReadNpy, unknown_types_are_refused) {
  for (const char* type : {"", "<", "f4", "<f", "<f3", "=f4", "<f4 ", "<f+4", "<f99999999999999999999", "<V0",
                           "|V4294967296", "<?", "float32"}) {
    EXPECT_EQ(of(header("'" + std::string(type) + "'", "()"), 4),
              "it has the unknown type \"" + std::string(type) +
                  "\"; types are \"<f4\", \"<f2\", \"|V2\", \"|u1\", \"bfloat16\" and their like");
  }
  EXPECT_LT(of(header("'" + std::string(60'000, '\x1b') + "'", "()")).size(), 300U);
}

TEST(ReadNpy, every_version_is_read) {
  const test::TemporaryFolder folder;
  for (const int version : {1, 2, 3}) {
    const std::string content = npy_text(header("'<f4'", "(1, 2)"), bytes_of({1.5F, -2.0F}), version);
    const TensorFile file = TensorFile::open(folder.write("step.7.npy", content));
    ASSERT_EQ(file.tensors().size(), 1U);
    EXPECT_EQ(file.tensors()[0].name, "step.7");
    EXPECT_EQ(file.tensors()[0].format, "<f4");
    EXPECT_EQ(file.tensors()[0].dtype, core::Dtype::fp32);
    EXPECT_EQ(file.tensors()[0].shape, Shape({1, 2}));
    EXPECT_EQ(numbers_of(file.tensors()[0]), std::vector<double>({1.5, -2}));
  }
}

TEST(ReadNpy, headers_may_be_written_in_other_ways_that_python_reads) {
  EXPECT_EQ(of("{\"shape\":(2L,1,),\n'fortran_order':True,\t'descr':'<f4'}", 8), "");
  EXPECT_EQ(of("{'shape': ( ) , 'fortran_order' : False , 'descr' : '>u1' , } ", 1), "") << "a byte has no order";
}

TEST(ReadNpy, types_are_told_apart) {
  struct Case {
    const char* type;
    std::size_t bytes;
    std::optional<core::Dtype> dtype;
  };
  const test::TemporaryFolder folder;
  for (const auto& [type, bytes, dtype] : std::vector<Case>{{"<f8", 8, core::Dtype::fp64},
                                                            {"<f4", 4, core::Dtype::fp32},
                                                            {"<f2", 2, core::Dtype::fp16},
                                                            {"<f1", 1, core::Dtype::fp8_e5m2},
                                                            {"bfloat16", 2, core::Dtype::bf16},
                                                            {"float8_e4m3fn", 1, core::Dtype::fp8_e4m3},
                                                            {"<i4", 4, core::Dtype::int32},
                                                            {"|u1", 1, core::Dtype::uint8},
                                                            {"|i1", 1, {}},
                                                            {"<i8", 8, {}},
                                                            {"<u2", 2, {}},
                                                            {"|b1", 1, {}},
                                                            {"<c8", 8, {}},
                                                            {"<f16", 16, {}},
                                                            {"|V2", 2, {}},
                                                            {"<V2", 2, {}},
                                                            {"|V1", 1, {}}}) {
    const TensorFile file = TensorFile::open(
        folder.write("x", npy_text(header("'" + std::string(type) + "'", "(3,)"), std::string(3 * bytes, '\0'))));
    EXPECT_EQ(file.tensors()[0].dtype, dtype) << type;
    EXPECT_EQ(file.tensors()[0].element_bits, 8 * bytes) << type;
    EXPECT_EQ(file.tensors()[0].bytes.size(), 3 * bytes) << type;
  }
}

TEST(ReadNpy, order_matters_only_where_two_dimensions_are_larger_than_one) {
  const test::TemporaryFolder folder;
  const auto column_major = [&](std::string_view shape, std::size_t bytes) {
    return TensorFile::open(folder.write("x", npy_text(header("'|u1'", shape, "True"), std::string(bytes, '\0'))))
        .tensors()[0]
        .column_major;
  };
  EXPECT_TRUE(column_major("(2, 3)", 6));
  EXPECT_TRUE(column_major("(2, 1, 3)", 6));
  EXPECT_FALSE(column_major("(1, 6, 1)", 6));
  EXPECT_FALSE(column_major("(6,)", 6));
  EXPECT_FALSE(column_major("()", 1));
}

}  // namespace
}  // namespace numcheck::data
