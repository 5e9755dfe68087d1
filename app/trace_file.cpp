#include "trace_file.hpp"

#include <exception>
#include <utility>

#include <fmt/format.h>

#include "core/file.hpp"
#include "core/printable.hpp"
#include "facts.hpp"

namespace numcheck::app {

TraceFile::TraceFile(std::string path, Terminal& terminal) : path_(std::move(path)), terminal_(terminal) {}

TraceFile::~TraceFile() {
  rescue();
}

void TraceFile::connect(const report::RunFacts& facts, run::PipelineOptions& pipeline) {
  if (path_.empty()) {
    return;
  }
  facts_ = {{"tool", "te-numcheck " + version_text(facts.tool)}, {"plan", facts.plan.name}, {"started", facts.started}};
  trace_ = std::make_unique<core::Trace>();
  pipeline.workers.trace = trace_.get();
  pipeline.on_stuck = [this, end = std::move(pipeline.on_stuck)](const std::string& why) {
    rescue();
    end(why);
  };
}

void TraceFile::finish() {
  if (trace_ != nullptr && !written_.exchange(true)) {
    core::write_file(path_, [this](const core::TakeText& take) { run::write_trace(*trace_, facts_, take); });
  }
}

void TraceFile::rescue() {
  try {
    finish();
  } catch (const std::exception& failure) {
    terminal_.err(fmt::format("error: {}\n", core::printable(failure.what())));
  }
}

}  // namespace numcheck::app
