// What a worker says, and the texts of records.
#include "worker/protocol.hpp"

#include <array>
#include <optional>

#include "core/printable.hpp"
#include "worker/json_fields.hpp"

namespace numcheck::worker {
namespace {

using nlohmann::json;
using namespace fields;

constexpr std::size_t kMaxText = 4096;   ///< of one text in a report
constexpr std::size_t kMaxDetail = 512;  ///< of one detail's value
constexpr std::size_t kMaxDetails = 64;
constexpr std::size_t kMaxSentence = 2048;  ///< of an answer
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
    outputs.push_back({{"port", output.port}, {"digest", output.digest.hex()}});
  }
  return {{"label", printable(report.label, kMaxText)},
          {"details", std::move(details)},
          {"workspace_bytes", report.workspace_bytes},
          {"observed_class", printable(report.observed_class, kMaxText)},
          {"deterministic", report.deterministic},
          {"guards_intact", report.guards_intact},
          {"inputs_intact", report.inputs_intact},
          {"guard_detail", printable(report.guard_detail, kMaxText)},
          {"device_s", report.device_s},
          {"outputs", std::move(outputs)},
          {"error", printable(report.error, kMaxText)}};
}

RunReport report_from(const json& object) {
  RunReport report;
  report.label = text(object, "label");
  report.details = pairs(object, "details");
  report.workspace_bytes = count(object, "workspace_bytes");
  report.observed_class = text(object, "observed_class");
  report.deterministic = boolean(object, "deterministic");
  report.guards_intact = boolean(object, "guards_intact");
  report.inputs_intact = boolean(object, "inputs_intact");
  report.guard_detail = text(object, "guard_detail");
  report.device_s = seconds(object, "device_s");
  for (const json& output : list(object, "outputs")) {
    report.outputs.push_back({text(output, "port"), digest(output, "digest")});
  }
  report.error = text(object, "error");
  return report;
}

Outcome outcome_from(const json& object) {
  const auto kind = position_of(kOutcomes, text(object, "kind"));
  if (!kind || static_cast<Outcome::Kind>(*kind) == Outcome::Kind::timeout) {
    refuse("kind", "an end that a worker can report");
  }
  return {static_cast<Outcome::Kind>(*kind), text(object, "reason"), seconds(object, "device_s")};
}

json outcome_to_json(const Outcome& outcome, std::size_t max_reason) {
  return {{"kind", kOutcomes.at(static_cast<std::size_t>(outcome.kind))},
          {"reason", printable(outcome.reason, max_reason)},
          {"device_s", outcome.device_s}};
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
  return line(
      {{"type", "answer"}, {"task", message.task}, {"outcome", outcome_to_json(message.outcome, kMaxSentence)}});
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
      throw ProtocolError(fmt::format("it speaks protocol {}, not {}: another build?", version, kProtocolVersion));
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
    return Answer{count(object, "task"), outcome_from(member(object, "outcome"))};
  }
  if (type == "run") {
    return RunDone{count(object, "task"), report_from(member(object, "report"))};
  }
  if (type == "end") {
    return TaskEnded{count(object, "task"), outcome_from(member(object, "outcome"))};
  }
  throw ProtocolError(fmt::format("there is no message \"{}\"", printable(type, 40)));
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  return core::printable_bytes(text, max_bytes);
}

}  // namespace numcheck::worker
