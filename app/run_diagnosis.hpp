// run --diagnose: why runs have failed, found while their tensors exist.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "diagnose/simulator.hpp"
#include "machine/device.hpp"
#include "op/reference.hpp"
#include "plan/case.hpp"
#include "run/pipeline.hpp"
#include "verdict/record.hpp"
#include "worker/execution.hpp"

namespace numcheck::app {

/// Which runs are diagnosed.
enum class DiagnoseWhich { never, first, failed, all };

/// Of --diagnose: the first few on a terminal, none elsewhere, if it is empty. Throws core::UsageError for other words.
[[nodiscard]] DiagnoseWhich parse_diagnose(const std::string& text, bool on_terminal);

class RunDiagnosis {
 public:
  /// Makes the pipeline ask it about failures; it must outlive the run.
  void connect(DiagnoseWhich which, run::PipelineOptions& pipeline);
  /// What computes. To be called before the first run ends.
  void set_device(const machine::Device& device);

 private:
  [[nodiscard]] std::optional<op::Finding> explain(const plan::Case& c, const verdict::RunResult& result,
                                                   std::span<const worker::HostPort> ports);
  /// Counts it, if it is to be diagnosed.
  [[nodiscard]] bool takes(const verdict::RunResult& result);

  DiagnoseWhich which_ = DiagnoseWhich::never;
  std::mutex mutex_;  ///< guards what follows
  std::size_t taken_ = 0;
  machine::Device device_;
  std::shared_ptr<const diagnose::Simulator> simulator_;
};

}  // namespace numcheck::app
