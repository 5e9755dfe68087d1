// --keep-tensors: what every run of every case read and wrote, as files that other tools can open.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>

#include "run/pipeline.hpp"

namespace numcheck::app {

/// Writes DIGEST-N.safetensors for run N of the case whose digest begins with these 16 digits: its ports without
/// padding, and `expected_PORT` with the reference in double (for a sample: its values, and `expected_PORT_index`).
class TensorFolder {
 public:
  /// Creates the folder; throws core::UsageError if that fails.
  explicit TensorFolder(std::filesystem::path folder);

  /// Thread-safe. A failure does not stop the run: it is reported at the end.
  void keep(const run::RunTensors& tensors);
  /// Throws core::IoError for the first failure.
  void finish() const;

 private:
  std::filesystem::path folder_;
  std::mutex mutex_;
  std::string failure_;
};

}  // namespace numcheck::app
