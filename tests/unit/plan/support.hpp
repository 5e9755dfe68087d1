// What the tests of lib/plan share: the vocabulary, loading from text, folders with files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::plan::testing {

[[nodiscard]] const op::Op* lookup(std::string_view name);
[[nodiscard]] const Vocabulary& vocabulary();

/// Loads a text as the plan "plan.json".
[[nodiscard]] Plan load(std::string_view text, const Limits& limits = {});

/// A plan of one case of gemm, bf16, 1 x 1 x 1, with more keys: the keys are the second line of the text.
[[nodiscard]] std::string with_case(std::string_view keys);

/// All diagnostics of a text, rendered; warnings if it is a plan.
[[nodiscard]] std::string diagnose(std::string_view text, const Limits& limits = {});

[[nodiscard]] std::vector<std::string> ids(const Plan& plan);

/// A folder that is removed at the end of the test.
class Folder {
 public:
  /// Writes a file (folders are made) and returns its path.
  std::string write(const std::string& name, std::string_view text) const;
  [[nodiscard]] std::string path(const std::string& name) const;
  /// Diagnostics of the plan `name` with the folder's path removed.
  [[nodiscard]] std::string diagnose_file(const std::string& name, const Limits& limits = {}) const;

 private:
  test::TemporaryFolder root_;
};

/// Content of a file of the repository; fails the test if there is none.
[[nodiscard]] std::string read_repository_file(const std::string& name);

}  // namespace numcheck::plan::testing
