// The table of gates, decoded strictly from JSON:
//
//   {"comment": "...", "checked_with": {"cudnn": "9.19.0", "transformer_engine": "2.20.2"},
//    "preference": [{"when": CONDITION, "order": ["fused", "flash", "unfused"], "source": "..."}, ...],
//    "gates": [{"selector": "cudnn", "name": "head_multiple", "refuses": CONDITION, "sentence": "... (d is {d})",
//               "source": "...", "answer": "documented_only"}, ...]}
//
//   CONDITION   {TERM, ...}                              all hold
//   TERM        "sm": NUMBERS                            a number of facts.hpp; versions are texts: "9.10.2"
//               "mask": "causal" or ["causal", ...]      a word: one of them
//               "padding": true                          a flag
//               "any": [CONDITION, ...]                  one holds
//               "not": CONDITION                         it does not hold
//   NUMBERS     90, {"from": 90, "to": 99, "below": 100, "multiple_of": 8}, or a list of these: one of them
//
// A sentence may name numbers in braces. A key or a word that is not listed here is an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "eligibility/condition.hpp"

namespace numcheck::eligibility {

/// Who refuses a case.
enum class Selector : std::uint8_t {
  cudnn,            ///< cuDNN's attention graphs, asked directly
  fused_interface,  ///< what TransformerEngine's fused attention cannot be told, or computes otherwise
  fused_kernels,    ///< nvte_get_fused_attn_backend
  fused_layer,      ///< TransformerEngine's PyTorch layer, before it calls that function
  flash,            ///< the same layer on behalf of flash-attn, which te-numcheck does not call
  fused_case,       ///< what users of the fused attention get, but not for inputs of their own
  unfused,  ///< the same layer on behalf of its UnfusedDotProductAttention, which is not our backend of that name
};

/// What TransformerEngine's PyTorch layer can choose.
enum class TeChoice : std::uint8_t { fused, flash, unfused };

/// What the library itself is known to say where the gate fails.
enum class Answer : std::uint8_t {
  refused,          ///< if the row does not say otherwise
  documented_only,  ///< documents exclude the case, but the library may well accept it
  not_asked,        ///< te-numcheck does not ask
};

struct Gate {
  Selector selector = Selector::cudnn;
  std::string name;      ///< unique for its selector
  Condition refuses;     ///< the gate fails if this holds
  std::string sentence;  ///< with numbers in braces: "the head dimension is {d}"
  std::string source;
  Answer answer = Answer::refused;
};

struct Preference {
  Condition when;
  std::vector<TeChoice> order;
  std::string source;
};

struct GateTable {
  std::string cudnn;               ///< the version that rows without a version were checked with: "9.19.0"
  std::string transformer_engine;  ///< likewise
  std::vector<Preference> preferences;
  std::vector<Gate> gates;  ///< in the order in which they are read
};

/// Throws core::InternalError that names the place.
[[nodiscard]] GateTable decode_gates(std::string_view json);

/// 91002 for "9.10.2", 8907 for "8.9.7", as cudnnGetVersion has it; 0 if the text is not such a version.
[[nodiscard]] std::int64_t cudnn_number(std::string_view version);

}  // namespace numcheck::eligibility
