#include "worker/protocol.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/printable.hpp"
#include "worker/channel.hpp"
#include "worker/json_fields.hpp"
#include "worker/rounding_json.hpp"

namespace numcheck::worker {
namespace {

using nlohmann::json;
using namespace fields;

constexpr std::size_t kMaxText = 4096;   ///< of one string in a report
constexpr std::size_t kMaxDetail = 512;  ///< of one detail's value
constexpr std::size_t kMaxDetails = 64;
constexpr std::size_t kMaxAnswerReason = 2048;  ///< of the reason in an answer
constexpr std::size_t kMaxConfigurations = 64, kMaxConfiguration = 256;
constexpr std::size_t kQuestionBytes = kMaxMessageBytes / 2;  ///< of the cases in a question
constexpr std::array<const char*, 5> kOutcomes{"done", "unsupported", "error", "crashed", "timeout"};

json to_json(const machine::Device& device) {
  return {{"name", device.name},
          {"sm", device.sm},
          {"simulated", device.simulated},
          {"index", device.index},
          {"uuid", device.uuid},
          {"driver", device.driver},
          {"memory_bytes", device.memory_bytes},
          {"multiprocessors", device.multiprocessors}};
}

machine::Device device_from(const json& object) {
  machine::Device device;
  device.name = text(object, "name");
  device.sm = small(object, "sm");
  device.simulated = boolean(object, "simulated");
  device.index = small(object, "index");
  device.uuid = text(object, "uuid");
  device.driver = text(object, "driver");
  device.memory_bytes = count(object, "memory_bytes");
  device.multiprocessors = small(object, "multiprocessors");
  return device;
}

json report_to_json(const RunReport& report) {
  json details = json::array();
  for (const auto& [name, value] : report.details) {
    if (details.size() == kMaxDetails) {
      break;
    }
    details.push_back({printable(name, kMaxDetail), printable(value, kMaxDetail)});
  }
  json outputs = json::array();
  for (const OutputDigest& output : report.outputs) {
    outputs.push_back({{"port", output.port}, {"digest", output.digest.hex()}, {"repeats", output.repeats}});
  }
  return {{"backend", printable(report.backend, kMaxText)},
          {"label", printable(report.label, kMaxText)},
          {"details", std::move(details)},
          {"workspace_bytes", report.workspace_bytes},
          {"rounding", rounding_to_json(report.rounding)},
          {"observed_class", report.observed ? json(model::class_name(*report.observed)) : json()},
          {"conversion", conversion_to_json(report.conversion)},
          {"unordered", report.unordered},
          {"guards_intact", report.guards_intact},
          {"inputs_intact", report.inputs_intact},
          {"guard_detail", printable(report.guard_detail, kMaxText)},
          {"device_s", report.device_s},
          {"outputs", std::move(outputs)},
          {"fault_unseen", report.fault_unseen},
          {"error", printable(report.error, kMaxText)}};
}

std::optional<model::PrecisionClass> observed_class(const json& object) {
  if (member(object, "observed_class").is_null()) {
    return std::nullopt;
  }
  const std::optional<model::PrecisionClass> found = model::class_named(text(object, "observed_class"));
  if (!found) {
    reject("observed_class", "a precision class");
  }
  return found;
}

RunReport report_from(const json& object) {
  constexpr std::size_t kMaxUnordered = 64;
  RunReport report;
  report.backend = text(object, "backend");
  report.label = text(object, "label");
  report.details = pairs(object, "details");
  report.workspace_bytes = count(object, "workspace_bytes");
  report.rounding = rounding_from_json(member(object, "rounding"));
  report.observed = observed_class(object);
  report.conversion = conversion_from_json(member(object, "conversion"));
  for (const json& name : list(object, "unordered")) {
    if (!name.is_string() || report.unordered.size() == kMaxUnordered) {
      reject("unordered", "a list of up to 64 names of outputs");
    }
    report.unordered.push_back(name.get<std::string>());
  }
  report.guards_intact = boolean(object, "guards_intact");
  report.inputs_intact = boolean(object, "inputs_intact");
  report.guard_detail = text(object, "guard_detail");
  report.device_s = seconds(object, "device_s");
  for (const json& output : list(object, "outputs")) {
    report.outputs.push_back({text(output, "port"), digest(output, "digest"), boolean(output, "repeats")});
  }
  report.fault_unseen = boolean(object, "fault_unseen");
  report.error = text(object, "error");
  return report;
}

Outcome outcome_from(const json& object) {
  const auto kind = position_of(kOutcomes, text(object, "kind"));
  if (!kind || static_cast<Outcome::Kind>(*kind) == Outcome::Kind::timeout) {
    reject("kind", "an outcome that a worker may report");
  }
  return {static_cast<Outcome::Kind>(*kind), text(object, "reason"), seconds(object, "device_s")};
}

Answer answer_from(const json& object) {
  Answer answer{count(object, "task"), outcome_from(member(object, "outcome"))};
  for (const json& key : list(object, "configurations")) {
    if (!key.is_string() || answer.outcome.configurations.size() == kMaxConfigurations) {
      reject("configurations", "a list of up to 64 strings");
    }
    answer.outcome.configurations.push_back(key.get<std::string>());
  }
  return answer;
}

json outcome_to_json(const Outcome& outcome, std::size_t max_reason) {
  return {{"kind", kOutcomes.at(static_cast<std::size_t>(outcome.kind))},
          {"reason", printable(outcome.reason, max_reason)},
          {"device_s", outcome.device_s}};
}

json options_to_json(const ExecuteOptions& options) {
  return {{"repeats", options.repeats},
          {"inject", options.inject},
          {"classify", options.classify},
          {"configurations", options.configurations}};
}

ExecuteOptions options_from(const json& object) {
  return {small(object, "repeats"), text(object, "inject"), boolean(object, "classify"),
          boolean(object, "configurations")};
}

QuestionRequest question_from(const json& object, plan::OpLookup lookup) {
  QuestionRequest question{count(object, "task"), options_from(member(object, "options")), {}};
  for (const json& c : list(object, "cases")) {
    QuestionCase& asked = question.cases.emplace_back();
    try {
      asked.c = plan::case_from_json(c, lookup);
    } catch (const std::exception& error) {
      asked.error = error.what();
    }
  }
  return question;
}

std::vector<PortPlace> places_from(const json& object, std::size_t ports) {
  std::vector<PortPlace> places;
  for (const json& place : list(object, "places")) {
    places.push_back({count(place, "arena"), count(place, "offset"), count(place, "bytes")});
  }
  if (places.size() != ports) {
    throw ProtocolError(fmt::format("there are {} places for {} ports", places.size(), ports));
  }
  return places;
}

TaskRequest task_from(const json& object, plan::OpLookup lookup) {
  TaskRequest request;
  request.task = count(object, "task");
  for (const json& arena : list(object, "arenas")) {
    request.arenas.push_back({count(arena, "id"), count(arena, "bytes"), boolean(arena, "writable")});
  }
  try {
    request.c = plan::case_from_json(member(object, "case"), lookup);
    request.options = options_from(member(object, "options"));
    request.ports = request.c.op->ports(request.c.params, *request.c.mode);
    request.places = places_from(object, request.ports.size());
  } catch (const std::exception& error) {
    request.error = error.what();
  }
  return request;
}

}  // namespace

std::string encode(const Hello& message) {
  json libraries = json::array();
  for (const auto& [name, version] : message.facts.libraries) {
    libraries.push_back({name, version});
  }
  return line({{"type", "hello"},
               {"protocol", kProtocolVersion},
               {"device", to_json(message.facts.device)},
               {"libraries", std::move(libraries)}});
}

std::string encode(const StartFailed& message) {
  return line({{"type", "failed"}, {"text", printable(message.text, kMaxText)}});
}

std::string encode(const Started& message) {
  return line({{"type", "started"}, {"task", message.task}});
}

std::string encode(const Lost& message) {
  return line({{"type", "lost"}, {"task", message.task}, {"text", printable(message.text, kMaxText)}});
}

std::string encode(const Answer& message) {
  json configurations = json::array();
  for (const std::string& key : message.outcome.configurations) {
    if (configurations.size() < kMaxConfigurations) {
      configurations.push_back(printable(key, kMaxConfiguration));
    }
  }
  return line({{"type", "answer"},
               {"task", message.task},
               {"outcome", outcome_to_json(message.outcome, kMaxAnswerReason)},
               {"configurations", std::move(configurations)}});
}

std::string encode(const RunDone& message) {
  return line({{"type", "run"}, {"task", message.task}, {"report", report_to_json(message.report)}});
}

std::string encode(const TaskEnded& message) {
  return line({{"type", "end"}, {"task", message.task}, {"outcome", outcome_to_json(message.outcome, kMaxText)}});
}

FromWorker decode_from_worker(std::string_view message) {
  const json object = parse(message);
  const std::string& type = text(object, "type");
  if (type == "hello") {
    if (const int version = small(object, "protocol"); version != kProtocolVersion) {
      throw ProtocolError(
          fmt::format("it speaks protocol {} instead of {}; is it from a different build?", version, kProtocolVersion));
    }
    return Hello{{device_from(member(object, "device")), pairs(object, "libraries")}};
  }
  if (type == "failed") {
    return StartFailed{text(object, "text")};
  }
  if (type == "started") {
    return Started{count(object, "task")};
  }
  if (type == "lost") {
    return Lost{count(object, "task"), text(object, "text")};
  }
  if (type == "answer") {
    return answer_from(object);
  }
  if (type == "run") {
    return RunDone{count(object, "task"), report_from(member(object, "report"))};
  }
  if (type == "end") {
    return TaskEnded{count(object, "task"), outcome_from(member(object, "outcome"))};
  }
  throw ProtocolError(fmt::format("unknown message type \"{}\"", printable(type, 40)));
}

std::string encode_task(std::uint64_t task, const plan::Case& c, const ExecuteOptions& options,
                        std::span<const ArenaInfo> arenas, std::span<const PortPlace> places) {
  json arena_list = json::array();
  for (const ArenaInfo& arena : arenas) {
    arena_list.push_back({{"id", arena.id}, {"bytes", arena.bytes}, {"writable", arena.writable}});
  }
  json place_list = json::array();
  for (const PortPlace& place : places) {
    place_list.push_back({{"arena", place.arena}, {"offset", place.offset}, {"bytes", place.bytes}});
  }
  return line({{"type", "task"},
               {"task", task},
               {"case", plan::case_to_json(c)},
               {"options", options_to_json(options)},
               {"arenas", std::move(arena_list)},
               {"places", std::move(place_list)}});
}

EncodedQuestion encode_question(std::uint64_t task, std::span<const plan::Case* const> cases,
                                const ExecuteOptions& options) {
  EncodedQuestion question;
  json list = json::array();
  for (std::size_t bytes = 0; question.cases < std::min(cases.size(), kMaxCasesPerQuestion); ++question.cases) {
    json c = plan::case_to_json(*cases[question.cases]);
    bytes += line(c).size();
    if (bytes > kQuestionBytes && question.cases > 0) {
      break;
    }
    list.push_back(std::move(c));
  }
  question.text =
      line({{"type", "ask"}, {"task", task}, {"options", options_to_json(options)}, {"cases", std::move(list)}});
  return question;
}

std::string encode(const Ack& message) {
  return line({{"type", "ack"}, {"task", message.task}});
}

FromCoordinator decode_from_coordinator(std::string_view message, plan::OpLookup lookup) {
  const json object = parse(message);
  const std::string& type = text(object, "type");
  if (type == "task") {
    return task_from(object, lookup);
  }
  if (type == "ask") {
    return question_from(object, lookup);
  }
  if (type == "ack") {
    return Ack{count(object, "task")};
  }
  throw ProtocolError(fmt::format("unknown message type \"{}\"", printable(type, 40)));
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  return core::printable_bytes(text, max_bytes);
}

}  // namespace numcheck::worker
