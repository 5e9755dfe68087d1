// Directed probes: the instruction paths of every column of the probe tables, and how products become operands.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "model/instruction_table.hpp"

namespace numcheck::probe {

/// One product of a probe and how it is split into operands.
struct Factors {
  double a = 0;
  double b = 0;
};

/// x 2^j with exponents balanced over the two operands.
[[nodiscard]] Factors scaled(double x, int j);
/// The product `value`, which has few significant bits.
[[nodiscard]] Factors product(double value);
[[nodiscard]] std::vector<Factors> products(const std::vector<double>& values);

/// One instruction with the format of its operands.
struct Path {
  std::string name;
  model::Instruction instruction;
  core::Dtype dtype = core::Dtype::fp16;

  [[nodiscard]] bool fp8() const { return dtype == core::Dtype::fp8_e4m3 || dtype == core::Dtype::fp8_e5m2; }
  [[nodiscard]] int F() const { return instruction.step.F; }
};

/// D with products at the given indices along k, zeros elsewhere.
[[nodiscard]] std::uint32_t run_at(const Path& path, double c,
                                   const std::vector<std::pair<std::size_t, Factors>>& terms);
/// D with products in the first step.
[[nodiscard]] std::uint32_t run(const Path& path, double c, const std::vector<Factors>& terms);
/// Products and c are multiplied by 2^shift, the result is brought back.
[[nodiscard]] double run_shifted(const Path& path, int shift, double c, const std::vector<double>& values);
[[nodiscard]] double value_of(const Path& path, std::uint32_t word);
[[nodiscard]] double fp32(std::uint32_t word);
/// FP8 products and c are multiplied by 2^8, or their operands would leave E4M3.
[[nodiscard]] int shift_of(const Path& path);

[[nodiscard]] model::Instruction from_table(int sm, model::InstructionClass c, core::Dtype operand,
                                            core::Dtype accumulate);
/// The program does not model Volta and Turing; their step is the same with other parameters.
[[nodiscard]] model::Instruction older(int L, int F, int e_zero, core::Dtype accumulate = core::Dtype::fp32);

/// Columns of the probe tables: Volta, Turing, Ampere and Ada 16-bit, their TF32, Ada FP8, Hopper and Blackwell 16-bit,
/// their TF32, Hopper wgmma FP8, emulated FP8 mma, Blackwell FP8. Every path of a column must give the same words.
enum Column { V, T, A, At, D8, H, Ht, W8, M8, B8, kColumns };

[[nodiscard]] const std::array<std::vector<Path>, kColumns>& paths();

template <class F>
void for_all_paths(const F& body) {
  for (int column = 0; column < kColumns; ++column) {
    for (const Path& path : paths()[static_cast<std::size_t>(column)]) {
      body(static_cast<Column>(column), path);
    }
  }
}

}  // namespace numcheck::probe
