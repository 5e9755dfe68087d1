// Errors that end a run or a case. Expected outcomes (unsupported, inconclusive) are values, never exceptions.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace numcheck::core {

/// Process exit codes, as documented in README ("Exit codes").
enum class ExitCode : int {
  success = 0,
  numerics_differ = 1,
  usage = 2,
  environment = 3,
  nothing_verified = 4,
  hung_up = 129,
  interrupted = 130,
  terminated = 143,
};

/// Base of all exceptions that the program throws on purpose; carries the exit code it leads to. A message is one line:
/// a line break in it came from outside and is shown escaped. Further lines are notes.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message, std::vector<std::string> notes = {})
      : std::runtime_error(message), code_(code), notes_(std::move(notes)) {}
  [[nodiscard]] ExitCode exit_code() const noexcept { return code_; }
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }

 private:
  ExitCode code_;
  std::vector<std::string> notes_;
};

/// A command line that cannot be carried out: unknown option, contradictory options.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message, std::vector<std::string> notes = {})
      : Error(ExitCode::usage, message, std::move(notes)) {}
};

/// A file or stream that cannot be read or written.
class IoError : public Error {
 public:
  explicit IoError(const std::string& message) : Error(ExitCode::environment, message) {}
};

/// A device, driver or library that the run needs is missing or does not work.
class EnvironmentError : public Error {
 public:
  explicit EnvironmentError(const std::string& message) : Error(ExitCode::environment, message) {}
};

/// A broken invariant of this program: a bug.
class InternalError : public Error {
 public:
  explicit InternalError(const std::string& message) : Error(ExitCode::environment, message) {}
};

}  // namespace numcheck::core
