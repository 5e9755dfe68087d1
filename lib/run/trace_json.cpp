#include "run/trace_json.hpp"

#include <unistd.h>

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace numcheck::run {
namespace {

using core::Trace;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// In microseconds, exactly: what lies within another span must do so in the file.
std::string microseconds(Trace::Clock::duration time) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string metadata(std::string_view name, int process, int thread, std::string_view argument,
                     std::string_view value) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"{}":{}}}}})", name, process, thread,
                     argument, value);
}

std::string arguments(const Trace::Event& event, bool ended) {
  std::string text;
  const auto add = [&text](std::string_view name, std::string_view value) {
    text += fmt::format(R"({}"{}":{})", text.empty() ? "" : ",", name, value);
  };
  if (!event.subject.empty()) {
    add(event.cases == 1 ? "case" : "group", json_text(event.subject));
  }
  if (event.cases != 1) {
    add("cases", std::to_string(event.cases));
  }
  if (!event.detail.empty()) {
    add("detail", json_text(event.detail));
  }
  if (!ended) {
    add("unfinished", "true");
  }
  return text;
}

}  // namespace

void write_trace(const Trace& trace, const TraceFacts& facts, const core::TakeText& take_piece) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::string piece;
  const auto take = [&](const std::string& text) {
    piece += text;
    if (piece.size() >= kPiece) {
      take_piece(std::exchange(piece, {}));
    }
  };
  const int process = ::getpid();
  const std::vector<Trace::Event> events = trace.events();
  const Trace::Clock::time_point now = Trace::Clock::now();
  std::string about;
  for (const auto& [name, value] : facts) {
    about += fmt::format("{}{}:{}", about.empty() ? "" : ",", json_text(name), json_text(value));
  }
  take(fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{{}}},\"traceEvents\":[\n", about));
  take(metadata("process_name", process, process, "name", json_text("te-numcheck")));
  std::size_t position = 0;
  for (const Trace::Thread& thread : trace.threads()) {
    take(",\n" + metadata("thread_name", process, thread.number, "name", json_text(thread.name)));
    take(",\n" + metadata("thread_sort_index", process, thread.number, "sort_index", std::to_string(position++)));
  }
  for (const Trace::Event& event : events) {
    const bool ended = event.end != Trace::Clock::time_point::max();
    take(fmt::format(R"(,{}{{"name":{},"ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{{}}}}})", '\n',
                     json_text(event.stage), microseconds(event.begin - trace.start()),
                     microseconds((ended ? event.end : now) - event.begin), process, event.thread,
                     arguments(event, ended)));
  }
  take_piece(piece + "\n]}\n");
}

}  // namespace numcheck::run
