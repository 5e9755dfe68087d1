#include "model/instruction_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "model/embedded_files.hpp"

namespace numcheck::model {
namespace {

using core::Dtype;
using nlohmann::json;

template <class E>
struct Name {
  std::string_view name;
  E value;
};

constexpr std::array kClasses = {Name<InstructionClass>{"mma", InstructionClass::mma},
                                 Name<InstructionClass>{"wgmma", InstructionClass::wgmma},
                                 Name<InstructionClass>{"tcgen05", InstructionClass::tcgen05}};
constexpr std::array kRoundings = {Name<Rounding>{"rz_fp32", Rounding::rz_fp32},
                                   Name<Rounding>{"rz_e8m13", Rounding::rz_e8m13},
                                   Name<Rounding>{"rne_fp16", Rounding::rne_fp16}};
constexpr std::array kOrders = {Name<StepOrder>{"ascending", StepOrder::ascending},
                                Name<StepOrder>{"low_and_high_pairs", StepOrder::low_and_high_pairs}};

template <class E, std::size_t N>
E named(const std::array<Name<E>, N>& names, const std::string& name) {
  const auto* found = std::ranges::find(names, name, &Name<E>::name);
  if (found == names.end()) {
    throw core::InternalError("unknown word \"" + name + "\"");
  }
  return found->value;
}

Dtype dtype_named(const std::string& name) {
  const auto dtype = core::parse_dtype(name);
  if (!dtype) {
    throw core::InternalError("unknown format \"" + name + "\"");
  }
  return *dtype;
}

Instruction instruction_from(const json& row) {
  Instruction i;
  i.instruction_class = named(kClasses, row.at("class").get<std::string>());
  i.shape = row.at("shape").get<std::string>();
  for (const json& name : row.at("operands")) {
    i.operands.push_back(dtype_named(name.get<std::string>()));
  }
  i.mixed = row.value("mixed", false);
  i.accumulate = dtype_named(row.at("accumulate").get<std::string>());
  i.k = row.at("k").get<int>();
  i.step = {row.at("L").get<int>(), row.at("F").get<int>(), named(kRoundings, row.at("rho").get<std::string>()),
            row.at("e_zero").get<int>(), row.value("group", 0)};
  i.order = named(kOrders, row.value("order", "ascending"));
  i.late_c = row.value("late_c", false);
  i.evidence = row.at("evidence").get<std::string>();
  const bool legal = i.step.L >= 1 && i.step.L <= 64 && i.step.group >= 0 && i.step.F >= 10 && i.step.F <= 35 &&
                     i.k % i.step.L == 0 && accumulator_dtype(i.step.rho) == i.accumulate;
  if (!legal) {
    throw core::InternalError("parameters of " + i.shape + " are out of range");
  }
  return i;
}

Architecture architecture_from(const EmbeddedFile& file) {
  try {
    const json root = json::parse(file.text);
    Architecture a;
    a.sm = root.at("sm").get<int>();
    a.name = root.at("name").get<std::string>();
    a.sources = root.at("sources").get<std::vector<std::string>>();
    for (const json& row : root.at("instructions")) {
      a.instructions.push_back(instruction_from(row));
    }
    const json& gemm = root.at("gemm");
    a.gemm_class = named(kClasses, gemm.at("class").get<std::string>());
    a.fp8_promotion = gemm.at("fp8_promotion").get<int>();
    a.gemm_evidence = gemm.at("evidence").get<std::string>();
    return a;
  } catch (const std::exception& e) {
    throw core::InternalError(fmt::format("configs/models/{}: {}", file.name, e.what()));
  }
}

/// Position of product `index` of step `step` within the instruction's operands.
std::size_t source_index(const Instruction& i, std::size_t step, std::size_t index) {
  return i.order == StepOrder::ascending ? step * static_cast<std::size_t>(i.step.L) + index
                                         : index / 2 * 4 + 2 * step + index % 2;
}

std::uint32_t add_late(Dtype dtype, std::uint32_t c, std::uint32_t sum) {
  const auto nan = dtype == Dtype::fp16 ? 0x7FFFU : 0x7FFFFFFFU;
  const double exact = core::decode(c, dtype) + core::decode(sum, dtype);  // FP16: exact; FP32: see below
  if (exact != exact) {
    return nan;
  }
  if (dtype == Dtype::fp16) {
    return static_cast<std::uint32_t>(core::encode(exact, dtype));
  }
  // The sum of two FP32 numbers is not always a double, so the addition itself is done in FP32.
  const auto rounded = static_cast<float>(core::decode(c, dtype)) + static_cast<float>(core::decode(sum, dtype));
  return static_cast<std::uint32_t>(core::encode(static_cast<double>(rounded), dtype));
}

}  // namespace

bool Instruction::takes(Dtype a, Dtype b) const noexcept {
  return (mixed || a == b) && std::ranges::find(operands, a) != operands.end() &&
         std::ranges::find(operands, b) != operands.end();
}

std::span<const Architecture> architectures() {
  static const std::vector<Architecture> all = [] {
    std::vector<Architecture> list;
    for (const EmbeddedFile& file : model_files()) {
      list.push_back(architecture_from(file));
    }
    std::ranges::sort(list, {}, &Architecture::sm);
    return list;
  }();
  return all;
}

const Architecture* find_architecture(int sm) {
  const auto all = architectures();
  const auto above = std::ranges::upper_bound(all, sm, {}, &Architecture::sm);
  return above == all.begin() ? nullptr : &*(above - 1);
}

const Instruction* find_instruction(const Architecture& architecture, InstructionClass wanted, Dtype a, Dtype b,
                                    Dtype accumulate) {
  const Instruction* best = nullptr;
  for (const Instruction& i : architecture.instructions) {
    if (i.instruction_class == wanted && i.accumulate == accumulate && i.takes(a, b) &&
        (best == nullptr || i.k > best->k)) {
      best = &i;
    }
  }
  return best;
}

const char* instruction_class_name(InstructionClass c) noexcept {
  switch (c) {
    case InstructionClass::mma:
      return "mma";
    case InstructionClass::wgmma:
      return "wgmma";
    case InstructionClass::tcgen05:
      return "tcgen05";
  }
  return "?";
}

const char* rounding_name(Rounding rho) noexcept {
  switch (rho) {
    case Rounding::rz_fp32:
      return "RZ to FP32";
    case Rounding::rz_e8m13:
      return "RZ to E8M13";
    case Rounding::rne_fp16:
      return "RNE to FP16";
  }
  return "?";
}

std::uint32_t execute(const Instruction& instruction, std::span<const std::uint32_t> a, Dtype a_dtype,
                      std::span<const std::uint32_t> b, Dtype b_dtype, std::uint32_t c) {
  if (instruction.step.group != 0 || !instruction.takes(a_dtype, b_dtype) || a.size() != b.size() ||
      a.size() > static_cast<std::size_t>(instruction.k)) {
    throw core::InternalError("operands do not match " + instruction.shape);
  }
  std::uint32_t sum = instruction.late_c ? 0 : c;
  const auto steps = static_cast<std::size_t>(instruction.k / instruction.step.L);
  for (std::size_t step = 0; step < steps; ++step) {
    std::array<Operand, 64> left{};
    std::array<Operand, 64> right{};
    std::size_t count = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(instruction.step.L); ++i) {
      const std::size_t from = source_index(instruction, step, i);
      if (from < a.size()) {
        left[count] = decode_operand(a[from], a_dtype);
        right[count++] = decode_operand(b[from], b_dtype);
      }
    }
    sum = fused_step(instruction.step, std::span(left).first(count), a_dtype, std::span(right).first(count), b_dtype,
                     sum);
  }
  return instruction.late_c ? add_late(instruction.accumulate, c, sum) : sum;
}

}  // namespace numcheck::model
