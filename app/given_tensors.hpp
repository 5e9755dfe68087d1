// Tensors from files, and what the options say about them: what diagnose judges.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli_forward.hpp"
#include "data/tensor_file.hpp"
#include "diagnose/gather.hpp"

namespace numcheck::app {

struct TensorOptions {
  std::string op, mode;
  std::vector<std::string> files, map, inputs, outputs, dtypes, params;

  /// Whether one of them besides `op` is given.
  [[nodiscard]] bool any() const;
};

void add_tensor_options(CLI::App& cli, TensorOptions& options);

[[nodiscard]] std::vector<std::string_view> op_names();

/// The second file of a comparison.
struct AgainstFile {
  const std::string& path;
  const data::TensorFile& file;
};

/// The files of the options, open as long as it lives: requests refer to them.
class GivenTensors {
 public:
  /// Throws core::IoError, and core::UsageError for options that are not NAME=VALUE.
  explicit GivenTensors(const TensorOptions& options);

  /// All files that were opened.
  [[nodiscard]] const std::vector<std::string>& paths() const noexcept { return paths_; }
  /// Which gate the run that left the files failed at, as run --keep-tensors notes it; empty if they do not say.
  [[nodiscard]] std::string failing_of_run() const;
  /// What options and files say of op, parameters and tensors. Throws core::UsageError that says what does not fit.
  [[nodiscard]] diagnose::GatherRequest request(int sm) const;
  /// A request of the same op with the tensors of another file, under the names of the map, in place of those of the same
  /// ports. Inputs that it lacks are those of the request, but `outputs`, the ports whose tensors are judged, are only its
  /// own. Throws core::UsageError if it has none of these.
  [[nodiscard]] diagnose::GatherRequest with_file(diagnose::GatherRequest request, const AgainstFile& against,
                                                  std::span<const std::string> outputs) const;

 private:
  void read_params(diagnose::GatherRequest& request) const;
  void choose_op(diagnose::GatherRequest& request) const;
  /// Whether all tensors are those of one file, under their own names.
  [[nodiscard]] bool are_as_kept() const;
  static void take_run(const data::TensorFile& file, const plan::Case& c, diagnose::GatherRequest& request);
  void read_tensors(diagnose::GatherRequest& request) const;
  void add_by_own_name(diagnose::GatherRequest& request, const data::FileTensor& tensor) const;
  void set_formats(diagnose::GatherRequest& request) const;

  const TensorOptions& options_;
  std::vector<std::pair<std::string, std::string>> names_;  ///< of the map: port and tensor
  std::vector<std::string> paths_;
  std::vector<data::TensorFile> opened_;
  std::vector<std::pair<std::string, data::TensorFile>> single_;  ///< by port
};

}  // namespace numcheck::app
