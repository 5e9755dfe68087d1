// Files that hold views of a report.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli_forward.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "report/views/view.hpp"

namespace numcheck::app {

/// A file to write, and the view of the report that goes into it.
struct ViewFile {
  const report::views::View* view;
  std::string path;  ///< "-": stdout
};

struct ViewOptions {
  std::vector<std::vector<std::string>> paths =
      std::vector<std::vector<std::string>>(report::views::all_views().size());  ///< parallel to all_views()

  [[nodiscard]] std::vector<ViewFile> files() const;
};

/// Throws core::UsageError: of a brief report of that name, something is wanted that it does not have.
[[noreturn]] void refuse_brief(const std::string& name);

/// The same if there are views that brief reports do not have.
void require_views_of_brief(const std::vector<ViewFile>& files, const std::string& name);

/// One option for each view.
void add_view_options(CLI::App& cli, ViewOptions& options);

/// --slowest N, of the console view.
void add_slowest_option(CLI::App& cli, std::string& slowest);
/// Its value; 0 if it is not given. Throws core::UsageError.
[[nodiscard]] std::size_t slowest_count(const std::string& slowest);

/// Does all of them, then throws the first core::IoError: a full disk must not cost what could still be written.
class Attempts {
 public:
  template <class Write>
  void attempt(const Write& write) {
    try {
      write();
    } catch (const core::IoError& error) {
      failure_ = failure_.has_value() ? failure_ : error;
    }
  }
  [[nodiscard]] bool failed() const noexcept { return failure_.has_value(); }
  /// Throws the first failure, if there was one; `more` is a further fact about it.
  void finish(const std::string& more = "") const {
    if (failure_.has_value()) {
      throw core::IoError(failure_->what() + more);
    }
  }

 private:
  std::optional<core::IoError> failure_;
};

/// Replaces the file; a step summary, $GITHUB_STEP_SUMMARY, is appended to, as others may have written before. Throws
/// core::IoError.
void write_view_file(const std::string& path, const std::string& text);
/// The same with a text that `produce` passes on piece by piece.
void write_view_file(const std::string& path, const std::function<void(const core::TakeText&)>& produce);

}  // namespace numcheck::app
