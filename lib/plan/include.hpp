// `include`: the cases of other plans, all of them or those with certain tags.
#pragma once

#include <string>
#include <vector>

#include "plan/node.hpp"
#include "plan/reporter.hpp"

namespace numcheck::plan {

/// One entry of "include": "FILE", or {"file": "FILE", "tags": ["a", "b"]}.
struct Inclusion {
  const Node* file = nullptr;     ///< a string
  std::vector<std::string> tags;  ///< cases with at least one of them; empty: every case
  const Node* where = nullptr;
};

/// Decodes an entry or a list of entries; mistakes are reported and left out.
[[nodiscard]] std::vector<Inclusion> decode_inclusions(const Node& include, Reporter& reporter);

/// The chosen cases of an included plan, with what they inherit from its "defaults" written into them. Its name,
/// description and seed are not used. Reports a plan without cases, one of which none is chosen, and "params" in its
/// "defaults": which of them an op has is not known here.
[[nodiscard]] std::vector<Node> chosen_cases(Node plan, const Inclusion& inclusion, Reporter& reporter);

}  // namespace numcheck::plan
