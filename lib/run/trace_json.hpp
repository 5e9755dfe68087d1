// A trace in the format that Chrome and Perfetto show: "Trace Event Format", the JSON object with complete events.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file.hpp"
#include "core/trace.hpp"

namespace numcheck::run {

/// What a trace says about itself.
using TraceFacts = std::vector<std::pair<std::string_view, std::string>>;

/// Passes on the file piece by piece, in ASCII. Times are in microseconds since the trace was made; the numbers of threads are
/// those of the system. Spans that have not ended do so now, and say so.
void write_trace(const core::Trace& trace, const TraceFacts& facts, const core::TakeText& take);

}  // namespace numcheck::run
