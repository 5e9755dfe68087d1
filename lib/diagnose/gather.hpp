// From tensors of files to a subject: the case that they are of, and what does not fit.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/attention_reading.hpp"
#include "diagnose/fit.hpp"
#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

struct GatherRequest {
  const op::Op* op = nullptr;
  std::string mode;  ///< empty: the first whose operands are stored as the tensors are
  ChosenParams params;
  std::vector<NamedTensor> tensors;
  std::vector<TensorShape>
      unnamed;  ///< what else the files hold, by its names there: for messages if something is missing
  int sm = 90;  ///< architecture of the device that computed the outputs
  /// The inputs are those of an exact leg: integers of which every order of summation makes the same bits.
  bool exact_leg = false;
  Ran ran = {};
};

struct Gathered {
  Subject subject;
  std::vector<std::string> notes;  ///< what was read from the tensors, and what of them was changed
};

/// Throws core::UsageError that says which tensor or parameter does not fit, and what would.
[[nodiscard]] Gathered gather(const GatherRequest& request, prepare::Catalog catalog, plan::OpLookup lookup);

}  // namespace numcheck::diagnose
