// Identifiers and digests of many cases.
#pragma once

#include <string>
#include <vector>

#include "plan/case.hpp"

namespace numcheck::plan {

/// identify() of case after case, as fast as their texts are put together: what a case has in common with the one before is
/// written once.
class Identifier {
 public:
  void identify(Case& c);

 private:
  void take_op(const Case& c);
  void take_settings(const Case& c);
  void add_params(const Case& c);
  void add_params_as_json(const Case& c);

  const op::Op* op_ = nullptr;
  std::vector<std::size_t> order_;  ///< of its fields, by name
  bool known_ = false;              ///< the settings are those of the last case
  InputSpec inputs_;
  Environment environment_;
  AlgorithmSpec algorithms_;
  std::string backend_;
  std::string algorithms_segment_, inputs_segment_, environment_segment_, json_settings_;
  std::string id_, json_;  ///< of the case at hand
};

}  // namespace numcheck::plan
