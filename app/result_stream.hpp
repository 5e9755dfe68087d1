// run --jsonl: results as JSON Lines while the run goes on.
#pragma once

#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/file_descriptor.hpp"
#include "report/report.hpp"

namespace numcheck::app {

/// Writes each line at once and in printable ASCII. Never throws before finish(): a full disk must not lose the run, and
/// a reader that has seen enough (| head -1) is no error. Not thread-safe: finished cases come one at a time.
class ResultStream {
 public:
  /// "-" is stdout; "" writes nothing. An existing file is replaced when the first line comes.
  explicit ResultStream(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] bool on_stdout() const noexcept { return path_ == "-"; }

  /// The first line; does nothing if there is one.
  void begin(const report::RunFacts& facts);
  /// A case, by the digest in its record.
  void add(const nlohmann::json& record);
  /// Cases that have no line yet, because an earlier run finished them or because they did not run; then the summary. Throws
  /// core::IoError if a line could not be written.
  void finish(const report::RunFacts& facts, const nlohmann::json& report);

 private:
  void write(const nlohmann::json& line);
  void open();
  void fail(int error);

  std::string path_;
  core::FileDescriptor file_;
  int descriptor_ = -1;            ///< of the file, or stdout's
  void (*before_)(int) = nullptr;  ///< what SIGPIPE did before
  bool begun_ = false;
  bool stopped_ = false;  ///< nothing more can be written
  std::string failure_;
  std::set<std::string, std::less<>> written_;  ///< digests
};

}  // namespace numcheck::app
