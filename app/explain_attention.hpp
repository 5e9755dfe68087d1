// What `explain` says about a case of attention: which backends take it, which gate fails for the others, and what a
// user of TransformerEngine lands on.
#pragma once

#include <string>

#include "execution_options.hpp"
#include "plan/case.hpp"
#include "prepare/catalog.hpp"

namespace numcheck::app {

/// A device, and the versions for which gates are read.
struct AttentionSite {
  std::string device;  ///< "simulated sm_80"
  int sm = 0;
  std::string cudnn;  ///< "9.19.0"
  bool cudnn_assumed = true;
};

/// The device that a run with these options would use, and its cuDNN: the version that is given, or the installed one,
/// or the one that configs/attention_gates.json was checked with. Throws core::UsageError if the given one is not a
/// version, core::EnvironmentError if the device cannot be used.
[[nodiscard]] AttentionSite attention_site(const ExecutionOptions& options, const std::string& cudnn);

/// True if the op is attention, in either direction.
[[nodiscard]] bool is_attention(const op::Op& op);

/// Precondition: is_attention(*c.op).
[[nodiscard]] std::string explain_attention(const plan::Case& c, const prepare::CatalogRow& row,
                                            const AttentionSite& site, bool colour);

}  // namespace numcheck::app
