// The table of all ops with their references, error models and backends: the only place where an op is wired up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/contract/binding.hpp"
#include "plan/plan.hpp"
#include "prepare/catalog.hpp"
#include "worker/execution.hpp"

namespace numcheck::app {

/// One row of the backend table.
struct BackendInfo {
  std::string_view name;
  std::string_view doc;
};

[[nodiscard]] prepare::Catalog catalog();
/// Which ops each backend computes, in table order.
[[nodiscard]] kernels::Bindings bindings();
[[nodiscard]] const op::Op* find_op(std::string_view name);
[[nodiscard]] std::vector<BackendInfo> backends();

/// What the plan decoder knows about the catalog.
[[nodiscard]] plan::Vocabulary vocabulary();

/// Faults that --inject can plant.
[[nodiscard]] std::vector<kernels::FaultInfo> faults();

/// A fault, and the ops in which it can be planted (some of their cases may have no place for it).
struct FaultOfOps {
  kernels::FaultInfo info;
  std::vector<std::string_view> ops;
};
[[nodiscard]] std::vector<FaultOfOps> faults_by_op();

/// Creates executors for devices. Looks for libraries in `lib_dir` first, if it is not empty. TransformerEngine's library
/// is the one in `te_libs` (if there are several, the one that the case's backend names), or the installed one.
[[nodiscard]] worker::ExecutorFactory executor_factory(const std::string& lib_dir,
                                                       const std::vector<std::string>& te_libs);

}  // namespace numcheck::app
