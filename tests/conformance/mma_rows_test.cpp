// Replays published multiply-adds of real GPUs, one instruction a row: the model must match every bit, and wrong models
// must fail about as often as published ("Accurate Models of NVIDIA Tensor Cores", arXiv 2512.07004, model_validation).
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/codec.hpp"
#include "model/instruction_table.hpp"

namespace {

using numcheck::core::Dtype;
using numcheck::model::Instruction;
using numcheck::model::InstructionClass;
using numcheck::model::Operand;
using numcheck::model::Rounding;
using numcheck::model::StepModel;

struct Row {
  std::vector<std::uint32_t> a;
  std::vector<std::uint32_t> b;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
};

/// FP32 words as stored in the files; narrow formats are widened exactly.
std::vector<Row> read_rows(const std::string& file) {
  std::ifstream stream(std::string(TE_NUMCHECK_MMA_ROWS) + "/" + file);
  std::vector<Row> rows;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.front() == '#') {
      continue;
    }
    std::array<std::vector<std::uint32_t>, 4> columns;
    std::istringstream fields(line);
    std::size_t column = 0;
    for (std::string field; column < columns.size() && std::getline(fields, field, '\t'); ++column) {
      std::istringstream words(field);
      for (std::uint32_t word = 0; words >> std::hex >> word;) {
        columns[column].push_back(word);
      }
    }
    rows.push_back({columns[0], columns[1], columns[2].at(0), columns[3].at(0)});
  }
  return rows;
}

std::uint32_t narrowed(std::uint32_t word, Dtype dtype) {
  return static_cast<std::uint32_t>(numcheck::core::encode(numcheck::core::decode(word, Dtype::fp32), dtype));
}

std::vector<std::uint32_t> narrowed(const std::vector<std::uint32_t>& words, Dtype dtype) {
  std::vector<std::uint32_t> out;
  for (const std::uint32_t word : words) {
    out.push_back(narrowed(word, dtype));
  }
  return out;
}

struct File {
  std::string name;
  int sm;
  InstructionClass instruction_class;
  Dtype operands;
  Dtype accumulate;
  bool ignores_c;
};

const std::vector<File>& files() {
  static const std::vector<File> all = {
      {"A100_fp16_fp32", 80, InstructionClass::mma, Dtype::fp16, Dtype::fp32, false},
      {"A100_bf16_fp32", 80, InstructionClass::mma, Dtype::bf16, Dtype::fp32, false},
      {"A100_tf32_fp32", 80, InstructionClass::mma, Dtype::tf32, Dtype::fp32, false},
      {"A100_fp16_fp16", 80, InstructionClass::mma, Dtype::fp16, Dtype::fp16, false},
      {"H100_fp16_fp32", 90, InstructionClass::mma, Dtype::fp16, Dtype::fp32, false},
      {"H100_bf16_fp32", 90, InstructionClass::mma, Dtype::bf16, Dtype::fp32, false},
      {"H100_tf32_fp32", 90, InstructionClass::mma, Dtype::tf32, Dtype::fp32, false},
      {"H100_fp16_fp16", 90, InstructionClass::mma, Dtype::fp16, Dtype::fp16, false},
      {"H100_e4m3_fp32", 90, InstructionClass::wgmma, Dtype::fp8_e4m3, Dtype::fp32, true},
      {"H100_e5m2_fp32", 90, InstructionClass::wgmma, Dtype::fp8_e5m2, Dtype::fp32, true},
      {"H100_e4m3_fp16", 90, InstructionClass::mma, Dtype::fp8_e4m3, Dtype::fp16, false},
      {"H100_e5m2_fp16", 90, InstructionClass::mma, Dtype::fp8_e5m2, Dtype::fp16, false},
  };
  return all;
}

const File& file_named(const std::string& name) {
  for (const File& file : files()) {
    if (file.name == name) {
      return file;
    }
  }
  throw std::invalid_argument(name);
}

const Instruction& instruction_of(const File& file) {
  const auto* architecture = numcheck::model::find_architecture(file.sm);
  return *numcheck::model::find_instruction(*architecture, file.instruction_class, file.operands, file.operands,
                                            file.accumulate);
}

/// Rows for which the instruction and the device differ in bits.
std::size_t mismatches(const File& file, const std::vector<Row>& rows, const Instruction& instruction) {
  std::size_t count = 0;
  for (const Row& row : rows) {
    const std::uint32_t c = file.ignores_c ? 0 : narrowed(row.c, file.accumulate);
    const std::uint32_t d = numcheck::model::execute(instruction, narrowed(row.a, file.operands), file.operands,
                                                     narrowed(row.b, file.operands), file.operands, c);
    count += d != narrowed(row.d, file.accumulate) ? 1 : 0;
  }
  return count;
}

bool have_rows() {
  return std::ifstream(std::string(TE_NUMCHECK_MMA_ROWS) + "/A100_fp16_fp32.tsv").good();
}

constexpr const char* kSkipped = "the published rows are not at " TE_NUMCHECK_MMA_ROWS;

void PrintTo(const File& file, std::ostream* out) {
  *out << file.name;
}

class MmaRows : public testing::TestWithParam<File> {};

TEST_P(MmaRows, every_bit_of_the_device) {
  if (!have_rows()) {
    GTEST_SKIP() << kSkipped;
  }
  const auto rows = read_rows(GetParam().name + ".tsv");
  ASSERT_EQ(rows.size(), 1000U);
  EXPECT_EQ(mismatches(GetParam(), rows, instruction_of(GetParam())), 0U);
}

INSTANTIATE_TEST_SUITE_P(Files, MmaRows, testing::ValuesIn(files()),
                         [](const auto& param_info) { return param_info.param.name; });

/// A model that is wrong in one parameter, and the share of 5 000 published rows on which it fails.
struct WrongModel {
  std::string name;
  std::string file;
  std::function<void(Instruction&)> change;
  double share;
};

const std::vector<WrongModel>& wrong_models() {
  const auto with_f = [](int F) { return [F](Instruction& i) { i.step.F = F; }; };
  const auto with_l = [](int L) { return [L](Instruction& i) { i.step.L = L; }; };
  static const std::vector<WrongModel> all = {
      {"A100_fp16_F23", "A100_fp16_fp32", with_f(23), 1685 / 5000.0},
      {"A100_fp16_F25", "A100_fp16_fp32", with_f(25), 766 / 5000.0},
      {"A100_fp16_L4", "A100_fp16_fp32", with_l(4), 1261 / 5000.0},
      {"H100_fp16_F24", "H100_fp16_fp32", with_f(24), 1187 / 5000.0},
      {"H100_fp16_F26", "H100_fp16_fp32", with_f(26), 534 / 5000.0},
      {"H100_fp16_L8", "H100_fp16_fp32", with_l(8), 1550 / 5000.0},
      {"H100_bf16_F24", "H100_bf16_fp32", with_f(24), 525 / 5000.0},
      {"H100_bf16_F26", "H100_bf16_fp32", with_f(26), 170 / 5000.0},
      {"H100_e4m3_L16", "H100_e4m3_fp32", with_l(16), 814 / 5000.0},
      {"H100_e4m3_F12", "H100_e4m3_fp32", with_f(12), 1963 / 5000.0},
      {"H100_e4m3_F14", "H100_e4m3_fp32", with_f(14), 867 / 5000.0},
      {"H100_e4m3_full_width", "H100_e4m3_fp32", [](Instruction& i) { i.step.F = 25, i.step.rho = Rounding::rz_fp32; },
       2989 / 5000.0},
      {"H100_e4m3_RZ_FP32", "H100_e4m3_fp32", [](Instruction& i) { i.step.rho = Rounding::rz_fp32; }, 1415 / 5000.0},
  };
  return all;
}

void PrintTo(const WrongModel& model, std::ostream* out) {
  *out << model.name;
}

class WrongModels : public testing::TestWithParam<WrongModel> {};

TEST_P(WrongModels, fail_about_as_often_as_published) {
  if (!have_rows()) {
    GTEST_SKIP() << kSkipped;
  }
  const File& file = file_named(GetParam().file);
  Instruction wrong = instruction_of(file);
  GetParam().change(wrong);
  const double share = static_cast<double>(mismatches(file, read_rows(file.name + ".tsv"), wrong)) / 1000;
  // 1 000 of the 5 000 rows are here: four standard errors of the share.
  EXPECT_NEAR(share, GetParam().share, 4 * std::sqrt(GetParam().share * (1 - GetParam().share) / 1000));
}

INSTANTIATE_TEST_SUITE_P(Models, WrongModels, testing::ValuesIn(wrong_models()),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(EmulatedFp8, only_the_interleaved_order_with_late_c_fits) {
  if (!have_rows()) {
    GTEST_SKIP() << kSkipped;
  }
  const File file =
      file_named("H100_e4m3_fp16");  // a copy: g++ 13 believes that a reference would refer to the argument
  const auto rows = read_rows(file.name + ".tsv");
  Instruction halves = instruction_of(file);
  halves.order = numcheck::model::StepOrder::ascending;
  EXPECT_GT(mismatches(file, rows, halves), 200U);
  Instruction fused = instruction_of(file);
  fused.late_c = false;
  EXPECT_GT(mismatches(file, rows, fused), 200U);
}

}  // namespace
