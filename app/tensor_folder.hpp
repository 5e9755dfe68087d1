// --keep-tensors: what every run of every case read and wrote, as files that other tools can open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "run/pipeline.hpp"
#include "run_output.hpp"

namespace numcheck::app {

/// What is kept.
struct KeepLimits {
  bool only_failed = false;
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();  ///< of all files together
};

/// Writes DIGEST-N.safetensors for run N of the case whose digest begins with these 16 digits: its ports without
/// padding, and `expected_PORT` with the reference in double (for a sample: its values, and `expected_PORT_index`).
class TensorFolder {
 public:
  /// Creates the folder; throws core::UsageError if that fails, and for other words and sizes than --keep-only and
  /// --keep-bytes take.
  explicit TensorFolder(const OutputOptions& options);

  /// Thread-safe. A failure does not stop the run: it is reported at the end.
  void keep(const run::RunTensors& tensors);
  /// Throws core::IoError for the first failure. Returns notes: how many runs were not kept because of --keep-bytes.
  [[nodiscard]] std::vector<std::string> finish() const;

 private:
  /// Counts what the run takes, if it is to be kept.
  [[nodiscard]] bool takes(const run::RunTensors& run);

  std::filesystem::path folder_;
  KeepLimits limits_;
  std::mutex mutex_;
  std::string failure_;
  std::uint64_t bytes_ = 0;
  std::size_t left_out_ = 0;
};

}  // namespace numcheck::app
