// The mode that somebody's tensors were computed in, as far as their formats tell.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "diagnose/attention_reading.hpp"
#include "diagnose/fit.hpp"

namespace numcheck::diagnose {

/// A bias in FP32 that a product of 16- or 8-bit numbers adds as it is: its format tells nothing of the mode, and its numbers are
/// not rounded.
[[nodiscard]] bool is_wider_addend(const op::Port& port, const data::FileTensor& tensor);

/// Which modes of an op store its inputs as these tensors are stored. All that it is made of must outlive it.
class ModeChoice {
 public:
  ModeChoice(const op::Op& op, const ChosenParams& chosen, const std::vector<NamedTensor>& tensors,
             std::vector<TensorShape> shapes);

  /// The first such mode, of those that store the given outputs as they are if there is one; if there is none, an FP32 one whose
  /// other inputs are in formats that FP32 holds; null if there is none either.
  [[nodiscard]] const op::Mode* find() const;
  /// The mode of which the shapes make the fewest mistakes.
  [[nodiscard]] const op::Mode& least_mistaken() const;
  /// " (bf16 would, but bias is F32)", of the mode that stores most of them so; empty if none stores any.
  [[nodiscard]] std::string nearest() const;

 private:
  /// How many inputs are given in the formats in which the mode stores them, and those that are not, as a sentence.
  struct Suited {
    std::size_t count = 0;
    std::string others;
    bool outputs = true;    ///< all outputs are
    bool is_wider = false;  ///< the others are in 16 bits, and the mode stores them in FP32
  };
  [[nodiscard]] Suited suited(const op::Mode& mode) const;

  const op::Op& op_;
  const ChosenParams& chosen_;
  const std::vector<NamedTensor>& tensors_;
  std::vector<TensorShape> shapes_;
};

/// What to do about tensors of raw bytes; empty if there are none.
[[nodiscard]] std::string raw_advice(const std::vector<NamedTensor>& tensors);
/// That, and what to do about others in formats that no mode has: sentences.
[[nodiscard]] std::vector<std::string> format_advice(const std::vector<NamedTensor>& tensors);

}  // namespace numcheck::diagnose
