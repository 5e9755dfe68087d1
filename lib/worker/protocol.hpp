// The words of coordinator and worker. One JSON object a message, with its kind under "type":
//
//   worker -> coordinator                             coordinator -> worker
//   hello    protocol, device, libraries              ask      task, cases, options
//   failed   text (instead of hello)                  task     task, case, options, arenas, ports
//   started  task                                     ack      task (the output blocks may be overwritten)
//   lost     task, text (instead of started)
//   answer   task, outcome: one a case that was asked
//   run      task, report (waits for ack)
//   end      task, outcome
//
// Questions and tasks are numbered together. A worker that finds its device lost before it begins says so and ends: the
// fault is not that of the case it was given. An answer's outcome is `done` if the case can run, else unsupported or
// error with its sentence.
//
// What a worker says is not trusted: decode_from_worker checks every field and throws ProtocolError with a sentence.
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

/// Both sides are the same binary, unless somebody starts a worker by hand.
inline constexpr int kProtocolVersion = 5;

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
  std::uint64_t task = 0;  ///< what was to begin
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
/// Its sentence is cut so that the answers to a whole question fit into a socket's buffer.
[[nodiscard]] std::string encode(const Answer& message);
/// Texts are cut to what fits into a message.
[[nodiscard]] std::string encode(const RunDone& message);
[[nodiscard]] std::string encode(const TaskEnded& message);
[[nodiscard]] FromWorker decode_from_worker(std::string_view text);

/// Where a port's bytes lie: arena 0 means that there are none.
struct PortPlace {
  std::uint64_t arena = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// An arena that the worker has not seen yet; its descriptor travels with the message, in this order.
struct ArenaFact {
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
  bool writable = true;
};

struct TaskOrder {
  std::uint64_t task = 0;
  plan::Case c;
  ExecuteOptions options;
  std::vector<ArenaFact> arenas;
  std::vector<op::Port> ports;    ///< the case's
  std::vector<PortPlace> places;  ///< parallel to ports
  std::string mistake;  ///< why case, options or places cannot be used; empty when they can. `arenas` is always there
};
/// One case of a question.
struct AskedCase {
  plan::Case c;
  std::string mistake;  ///< why it cannot be used; empty when it can
};
struct QuestionOrder {
  std::uint64_t task = 0;
  ExecuteOptions options;
  std::vector<AskedCase> cases;
};
struct Ack {
  std::uint64_t task = 0;
};
using FromCoordinator = std::variant<TaskOrder, QuestionOrder, Ack>;

/// A question as a message, and how many cases it is about.
struct EncodedQuestion {
  std::string text;
  std::size_t cases = 0;
};

/// Cases of one question at most: a worker does not wait when it sends, so their answers must fit into its socket's
/// buffer (212 992 bytes; an answer is charged 8.5 KiB at most).
inline constexpr std::size_t kMaxCasesOfQuestion = 16;

/// A question about as many of the first cases as fit into a message, at least one.
[[nodiscard]] EncodedQuestion encode_question(std::uint64_t task, std::span<const plan::Case* const> cases,
                                              const ExecuteOptions& options);

[[nodiscard]] std::string encode_task(std::uint64_t task, const plan::Case& c, const ExecuteOptions& options,
                                      std::span<const ArenaFact> arenas, std::span<const PortPlace> places);
[[nodiscard]] std::string encode(const Ack& message);
/// Throws ProtocolError if it is no message; what is wrong with a case or its places is TaskOrder::mistake.
[[nodiscard]] FromCoordinator decode_from_coordinator(std::string_view text, plan::OpLookup lookup);

/// Text as it may stand in a record: core::printable, at most `max_bytes` long.
[[nodiscard]] std::string printable(std::string_view text, std::size_t max_bytes);

}  // namespace numcheck::worker
