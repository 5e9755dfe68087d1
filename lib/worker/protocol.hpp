// Messages between coordinator and worker. Each is one JSON object with its kind in "type":
//
//   worker -> coordinator                             coordinator -> worker
//   hello    protocol, device, libraries              ask      task, cases, options
//   failed   text (instead of hello)                  task     task, case, options, arenas, ports
//   started  task                                     ack      task (the output blocks may be overwritten)
//   lost     task, text (instead of started)
//   answer   task, outcome: one per case of an ask
//   run      task, report (waits for ack)
//   end      task, outcome
//
// Questions and tasks share one numbering. A worker that finds its device lost before it starts says so and exits, so
// that the case it received is not blamed. An answer's outcome is `done` if the case can run, otherwise unsupported or
// error with a reason.
//
// Messages from workers are not trusted: decode_from_worker checks every field and throws ProtocolError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "machine/device.hpp"
#include "op/op.hpp"
#include "plan/case.hpp"
#include "worker/execution.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {

/// Both sides are the same binary, unless a worker is started by hand.
inline constexpr int kProtocolVersion = 8;

class ProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Hello {
  WorkerHello facts;
};
struct StartFailed {
  std::string text;
};
struct Started {
  std::uint64_t task = 0;
};
/// The device stopped answering between two cases.
struct Lost {
  std::uint64_t task = 0;  ///< what it was about to start
  std::string text;
};
/// Whether the next case of a question can run.
struct Answer {
  std::uint64_t task = 0;
  Outcome outcome;
};
struct RunDone {
  std::uint64_t task = 0;
  RunReport report;
};
struct TaskEnded {
  std::uint64_t task = 0;
  Outcome outcome;
};
using FromWorker = std::variant<Hello, StartFailed, Started, Lost, Answer, RunDone, TaskEnded>;

[[nodiscard]] std::string encode(const Hello& message);
[[nodiscard]] std::string encode(const StartFailed& message);
[[nodiscard]] std::string encode(const Started& message);
[[nodiscard]] std::string encode(const Lost& message);
/// The reason is truncated so that all answers to a question fit into the socket's buffer.
[[nodiscard]] std::string encode(const Answer& message);
/// Strings are truncated to fit into a message.
[[nodiscard]] std::string encode(const RunDone& message);
[[nodiscard]] std::string encode(const TaskEnded& message);
[[nodiscard]] FromWorker decode_from_worker(std::string_view text);

/// Where a port's bytes lie; arena 0 means that it has none.
struct PortPlace {
  std::uint64_t arena = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// An arena that is new to the worker; its descriptor is attached to the message, in the same order.
struct ArenaInfo {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
  bool writable = true;
};

struct TaskRequest {
  std::uint64_t task = 0;
  plan::Case c;
  ExecuteOptions options;
  std::vector<ArenaInfo> arenas;
  std::vector<op::Port> ports;    ///< the case's
  std::vector<PortPlace> places;  ///< parallel to ports
  std::string error;  ///< why case, options or places are invalid; empty if they are valid. `arenas` is always set
};
/// One case of a question.
struct QuestionCase {
  plan::Case c;
  std::string error;  ///< why it is invalid; empty if it is valid
};
struct QuestionRequest {
  std::uint64_t task = 0;
  ExecuteOptions options;
  std::vector<QuestionCase> cases;
};
struct Ack {
  std::uint64_t task = 0;
};
using FromCoordinator = std::variant<TaskRequest, QuestionRequest, Ack>;

/// A question as a message, and the number of cases in it.
struct EncodedQuestion {
  std::string text;
  std::size_t cases = 0;
};

/// Sending does not block, so all answers to one question must fit into the worker's socket buffer (212 992 bytes, of
/// which an answer takes at most 8.5 KiB).
inline constexpr std::size_t kMaxCasesPerQuestion = 16;

/// A question about the first cases, as many as fit into a message but at least one.
[[nodiscard]] EncodedQuestion encode_question(std::uint64_t task, std::span<const plan::Case* const> cases,
                                              const ExecuteOptions& options);

[[nodiscard]] std::string encode_task(std::uint64_t task, const plan::Case& c, const ExecuteOptions& options,
                                      std::span<const ArenaInfo> arenas, std::span<const PortPlace> places);
[[nodiscard]] std::string encode(const Ack& message);
/// Throws ProtocolError if it is not a message; errors in a case or its places go to TaskRequest::error.
[[nodiscard]] FromCoordinator decode_from_coordinator(std::string_view text, plan::OpLookup lookup);

/// Text safe to store in a record: core::printable, at most `max_bytes` long.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_bytes);

}  // namespace numcheck::worker
