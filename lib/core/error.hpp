// Errors that end a run or a case. Expected outcomes (unsupported, inconclusive) are values, never exceptions.
#pragma once

#include <stdexcept>
#include <string>

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

/// Base of all exceptions that the program throws on purpose; carries the exit code it leads to.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// A command line that cannot be carried out: unknown option, contradictory options.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error(ExitCode::usage, message) {}
};

/// A file or stream that cannot be read or written.
class IoError : public Error {
 public:
  explicit IoError(const std::string& message) : Error(ExitCode::environment, message) {}
};

/// A device, driver or library that the run needs and that is missing or does not work.
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
