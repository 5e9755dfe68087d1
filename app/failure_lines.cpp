#include "failure_lines.hpp"

#include "core/printable.hpp"
#include "report/causes.hpp"
#include "terminal.hpp"

namespace numcheck::app {
namespace {

constexpr std::chrono::seconds kLong(5);
constexpr std::size_t kMaxLines = 10;

}  // namespace

void FailureLines::add(const run::FinishedCase& finished, std::chrono::steady_clock::time_point start) {
  if (finished.status == verdict::Status::fail && lines_.size() <= kMaxLines) {
    lines_.push_back(lines_.size() < kMaxLines ? report::failure_sentence(finished.record)
                                               : "more failures are in the report at the end");
  }
  if (context_.common.quiet || std::chrono::steady_clock::now() - start < kLong) {
    return;
  }
  for (; shown_ < lines_.size(); ++shown_) {
    context_.terminal.err("FAIL  " + core::printable(lines_[shown_]) + "\n");
  }
}

}  // namespace numcheck::app
