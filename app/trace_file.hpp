// run --trace: what ran when, for chrome://tracing and Perfetto.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/trace.hpp"
#include "report/report.hpp"
#include "run/pipeline.hpp"
#include "run/trace_json.hpp"
#include "terminal.hpp"

namespace numcheck::app {

/// Written at the end, however the run ends.
class TraceFile {
 public:
  /// "": nothing is recorded.
  TraceFile(std::string path, Terminal& terminal);
  /// As rescue().
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// What the pipeline does from now on is recorded, and written even if it gets stuck.
  void connect(const report::RunFacts& facts, run::PipelineOptions& pipeline);
  /// Writes the file, unless that was done. Throws core::IoError.
  void finish();
  /// The same where there is another failure to report: what is wrong with the file is said on the terminal. On any thread,
  /// also while others work.
  void rescue();

 private:
  std::string path_;
  Terminal& terminal_;
  run::TraceFacts facts_;
  std::unique_ptr<core::Trace> trace_;
  std::atomic<bool> written_ = false;
};

}  // namespace numcheck::app
