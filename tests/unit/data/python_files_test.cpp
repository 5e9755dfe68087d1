// Files that the libraries of Python write, if there are any here.
#include <sys/wait.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "data/tensor_file.hpp"
#include "tests/unit/data/tensor_files.hpp"

namespace numcheck::data {
namespace {

const std::vector<double> kNumbers = {0, 0.5, 1, -2, 1.5, 4};
const std::vector<double> kDoubled = {0, 1, 2, -4, 3, 8};

/// Another Python than that of the PATH: TE_NUMCHECK_TENSOR_PYTHON.
class PythonFiles : public testing::Test {
 protected:
  void SetUp() override {
    const char* python = std::getenv("TE_NUMCHECK_TENSOR_PYTHON");
    const std::string command = std::string(python == nullptr ? "python3" : python) +
                                " -B " TE_NUMCHECK_SOURCE_DIR "/tests/unit/data/write_tensor_files.py " +
                                folder_.path().string() + " 2>&1";
    const int status = std::system(command.c_str());
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)) {
      GTEST_SKIP() << "no Python with NumPy, ml_dtypes and safetensors";
    }
    ASSERT_EQ(status, 0);
  }

  [[nodiscard]] std::vector<double> numbers(const std::string& name, std::optional<core::Dtype> dtype = {}) const {
    const TensorFile file = TensorFile::open(folder_.path() / name);
    EXPECT_EQ(file.tensors()[0].shape, (std::vector<std::int64_t>{2, 3})) << name;
    return numbers_of(dtype ? read_as(file.tensors()[0], *dtype) : file.tensors()[0]);
  }

  test::TemporaryFolder folder_;
};

TEST_F(PythonFiles, arrays_are_read) {
  for (const char* order : {"", "_columns"}) {
    for (const char* name : {"fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"}) {
      EXPECT_EQ(numbers(std::string(name) + order + ".npy", core::parse_dtype(name)), kNumbers) << name << order;
    }
    for (const char* name : {"fp64", "fp32", "fp16"}) {
      EXPECT_EQ(numbers(std::string(name) + order + ".npy"), kNumbers) << name << order << " tells its format";
    }
    EXPECT_THROW((void)numbers("bf16.npy"), core::UsageError) << "bf16 does not";
  }
  EXPECT_EQ(numbers("fp4_e2m1.npy", core::Dtype::fp4_e2m1), kNumbers);
  EXPECT_EQ(numbers("int8.npy"), kDoubled);
  EXPECT_EQ(numbers("bool.npy"), (std::vector<double>{0, 0, 1, 0, 1, 1}));
  for (const char* name : {"big_endian.npy", "objects.npy", "several.npz"}) {
    EXPECT_THROW((void)TensorFile::open(folder_.path() / name), core::UsageError) << name;
  }
}

TEST_F(PythonFiles, safetensors_are_read) {
  const TensorFile file = TensorFile::open(folder_.path() / "all.safetensors");
  EXPECT_EQ(file.texts().at("made by"), "safetensors");
  EXPECT_EQ(file.tensors().size(), 8U);
  for (const char* name : {"fp64", "fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"}) {
    const FileTensor* tensor = file.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->dtype, core::parse_dtype(name));
    EXPECT_EQ(numbers_of(*tensor), kNumbers) << name;
  }
  EXPECT_EQ(numbers_of(*file.find("int64")), kDoubled);
  EXPECT_EQ(file.find("none")->shape, (std::vector<std::int64_t>{0, 3}));
}

}  // namespace
}  // namespace numcheck::data
