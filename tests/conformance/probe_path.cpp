#include "tests/conformance/probe_path.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "core/codec.hpp"

namespace numcheck::probe {

using core::Dtype;
using model::Instruction;
using model::InstructionClass;

namespace {

/// Index along k of the i-th product of the first step.
std::size_t position(const Path& path, std::size_t i) {
  return path.instruction.order == model::StepOrder::ascending ? i : i / 2 * 4 + i % 2;
}

constexpr std::array<const char*, kColumns> kNames = {"V", "T", "A", "At", "D8", "H", "Ht", "W8", "M8", "B8"};

}  // namespace

Factors scaled(double x, int j) {
  const int half = static_cast<int>(std::floor(j / 2.0));
  return {std::ldexp(x, half), std::ldexp(1.0, j - half)};
}

Factors product(double value) {
  if (value == 0) {
    return {};
  }
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  return scaled(2 * fraction, exponent - 1);
}

std::vector<Factors> products(const std::vector<double>& values) {
  std::vector<Factors> list;
  for (const double value : values) {
    list.push_back(product(value));
  }
  return list;
}

std::uint32_t run_at(const Path& path, double c, const std::vector<std::pair<std::size_t, Factors>>& terms) {
  const auto k = static_cast<std::size_t>(path.instruction.k);
  std::vector<std::uint32_t> a(k, 0);
  std::vector<std::uint32_t> b(k, 0);
  for (const auto& [index, factors] : terms) {
    a.at(index) = static_cast<std::uint32_t>(core::encode(factors.a, path.dtype));
    b.at(index) = static_cast<std::uint32_t>(core::encode(factors.b, path.dtype));
    EXPECT_EQ(core::decode(a.at(index), path.dtype), factors.a) << path.name << ": not an operand";
    EXPECT_EQ(core::decode(b.at(index), path.dtype), factors.b) << path.name << ": not an operand";
  }
  const Dtype accumulate = path.instruction.accumulate;
  const auto word = static_cast<std::uint32_t>(core::encode(c, accumulate));
  return model::execute(path.instruction, a, path.dtype, b, path.dtype, word);
}

std::uint32_t run(const Path& path, double c, const std::vector<Factors>& terms) {
  std::vector<std::pair<std::size_t, Factors>> placed;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    placed.emplace_back(position(path, i), terms[i]);
  }
  return run_at(path, c, placed);
}

double value_of(const Path& path, std::uint32_t word) {
  return core::decode(word, path.instruction.accumulate);
}

double run_shifted(const Path& path, int shift, double c, const std::vector<double>& values) {
  std::vector<Factors> terms;
  for (const double value : values) {
    terms.push_back(product(std::ldexp(value, shift)));
  }
  return std::ldexp(value_of(path, run(path, std::ldexp(c, shift), terms)), -shift);
}

Instruction from_table(int sm, InstructionClass c, Dtype operand, Dtype accumulate) {
  const auto* architecture = model::find_architecture(sm);
  const auto* found = model::find_instruction(*architecture, c, operand, operand, accumulate);
  EXPECT_NE(found, nullptr) << "sm_" << sm << " " << core::dtype_info(operand).name;
  return *found;
}

Instruction older(int L, int F, int e_zero, Dtype accumulate) {
  Instruction i;
  i.operands = {Dtype::fp16};
  i.accumulate = accumulate;
  i.k = 16;
  i.step = {L, F, accumulate == Dtype::fp16 ? model::Rounding::rne_fp16 : model::Rounding::rz_fp32, e_zero};
  return i;
}

const std::array<std::vector<Path>, kColumns>& paths() {
  static const auto all = [] {
    std::array<std::vector<Path>, kColumns> columns;
    const auto add = [&](Column column, int sm, InstructionClass c, Dtype dtype) {
      columns[column].push_back({std::string(kNames[column]) + " sm_" + std::to_string(sm) + " " +
                                     model::instruction_class_name(c) + " " + std::string(core::dtype_info(dtype).name),
                                 from_table(sm, c, dtype, Dtype::fp32), dtype});
    };
    columns[V].push_back({"V", older(4, 23, -131), Dtype::fp16});
    columns[T].push_back({"T", older(8, 24, -132), Dtype::fp16});
    for (const int sm : {80, 86, 89}) {
      add(A, sm, InstructionClass::mma, Dtype::fp16);
      add(A, sm, InstructionClass::mma, Dtype::bf16);
      add(At, sm, InstructionClass::mma, Dtype::tf32);
    }
    add(D8, 89, InstructionClass::mma, Dtype::fp8_e4m3);
    for (const int sm : {90, 100, 120}) {
      const InstructionClass library = sm == 90    ? InstructionClass::wgmma
                                       : sm == 100 ? InstructionClass::tcgen05
                                                   : InstructionClass::mma;
      for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
        add(H, sm, InstructionClass::mma, dtype);
        add(H, sm, library, dtype);
      }
      add(Ht, sm, InstructionClass::mma, Dtype::tf32);
      add(Ht, sm, library, Dtype::tf32);
    }
    add(W8, 90, InstructionClass::wgmma, Dtype::fp8_e4m3);
    add(M8, 90, InstructionClass::mma, Dtype::fp8_e4m3);
    add(M8, 100, InstructionClass::mma, Dtype::fp8_e4m3);
    add(B8, 100, InstructionClass::tcgen05, Dtype::fp8_e4m3);
    add(B8, 120, InstructionClass::mma, Dtype::fp8_e4m3);
    return columns;
  }();
  return all;
}

int shift_of(const Path& path) {
  return path.fp8() ? 8 : 0;
}

double fp32(std::uint32_t word) {
  return core::decode(word, Dtype::fp32);
}

}  // namespace numcheck::probe
