#include "run/protocol.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/dtype.hpp"
#include "run/json_fields.hpp"

namespace numcheck::run {
namespace {

using nlohmann::json;
using namespace fields;

constexpr std::size_t kMaxText = 4096;   ///< of one text in a report
constexpr std::size_t kMaxDetail = 512;  ///< of one detail's value
constexpr std::size_t kMaxDetails = 64;
constexpr std::array<const char*, 5> kOutcomes{"done", "unsupported", "error", "crashed", "timeout"};
constexpr std::array<const char*, 4> kRoles{"input", "scale", "output", "amax"};

std::optional<std::size_t> position_of(std::span<const char* const> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional<std::size_t>(found - names.begin());
}

json parse(std::string_view text) {
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    throw ProtocolError(fmt::format("it is not JSON ({}): \"{}\"", printable(error.what(), 120), printable(text, 80)));
  }
}

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

json port_to_json(const op::Port& port, const PortPlace& place) {
  return {{"name", port.name},
          {"role", kRoles.at(static_cast<std::size_t>(port.role))},
          {"dtype", core::dtype_info(port.dtype).name},
          {"batch", port.batch},
          {"rows", port.rows},
          {"cols", port.cols},
          {"ld", port.ld},
          {"batch_stride", port.batch_stride},
          {"offset_bytes", port.offset_bytes},
          {"of", port.of},
          {"arena", place.arena},
          {"place", place.offset},
          {"bytes", place.bytes}};
}

void add_port(TaskOrder& order, const json& object) {
  op::Port port;
  port.name = order.names.emplace_back(text(object, "name"));
  port.of = order.names.emplace_back(text(object, "of"));
  const auto role = position_of(kRoles, text(object, "role"));
  const auto dtype = core::parse_dtype(text(object, "dtype"));
  if (!role || !dtype) {
    refuse(role ? "dtype" : "role", "known");
  }
  port.role = static_cast<op::Role>(*role);
  port.dtype = *dtype;
  port.batch = extent(object, "batch");
  port.rows = extent(object, "rows");
  port.cols = extent(object, "cols");
  port.ld = extent(object, "ld");
  port.batch_stride = extent(object, "batch_stride");
  port.offset_bytes = extent(object, "offset_bytes");
  order.ports.push_back(port);
  order.places.push_back({count(object, "arena"), count(object, "place"), count(object, "bytes")});
}

TaskOrder order_from(const json& object, plan::OpLookup lookup) {
  TaskOrder order;
  order.task = count(object, "task");
  for (const json& arena : list(object, "arenas")) {
    order.arenas.push_back({count(arena, "id"), count(arena, "bytes")});
  }
  try {
    order.c = plan::case_from_json(member(object, "case"), lookup);
    const json& options = member(object, "options");
    order.options.repeats = small(options, "repeats");
    order.options.inject = text(options, "inject");
    order.options.classify = boolean(options, "classify");
    for (const json& port : list(object, "ports")) {
      add_port(order, port);
    }
  } catch (const std::exception& error) {
    order.mistake = error.what();
  }
  return order;
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

std::string encode(const RunDone& message) {
  return line({{"type", "run"}, {"task", message.task}, {"report", report_to_json(message.report)}});
}

std::string encode(const TaskEnded& message) {
  const Outcome& outcome = message.outcome;
  return line({{"type", "end"},
               {"task", message.task},
               {"outcome",
                {{"kind", kOutcomes.at(static_cast<std::size_t>(outcome.kind))},
                 {"reason", printable(outcome.reason, kMaxText)},
                 {"device_s", outcome.device_s}}}});
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
  if (type == "run") {
    return RunDone{count(object, "task"), report_from(member(object, "report"))};
  }
  if (type == "end") {
    return TaskEnded{count(object, "task"), outcome_from(member(object, "outcome"))};
  }
  throw ProtocolError(fmt::format("there is no message \"{}\"", printable(type, 40)));
}

std::string encode_task(std::uint64_t task, const plan::Case& c, const ExecuteOptions& options,
                        std::span<const ArenaFact> arenas, std::span<const HostPort> ports,
                        std::span<const PortPlace> places) {
  json arena_list = json::array();
  for (const ArenaFact& arena : arenas) {
    arena_list.push_back({{"id", arena.id}, {"bytes", arena.bytes}});
  }
  json port_list = json::array();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    port_list.push_back(port_to_json(*ports[i].port, places[i]));
  }
  return line({{"type", "task"},
               {"task", task},
               {"case", plan::case_to_json(c)},
               {"options", {{"repeats", options.repeats}, {"inject", options.inject}, {"classify", options.classify}}},
               {"arenas", std::move(arena_list)},
               {"ports", std::move(port_list)}});
}

std::string encode(const Ack& message) {
  return line({{"type", "ack"}, {"task", message.task}});
}

FromCoordinator decode_from_coordinator(std::string_view message, plan::OpLookup lookup) {
  const json object = parse(message);
  const std::string& type = text(object, "type");
  if (type == "task") {
    return order_from(object, lookup);
  }
  if (type == "ack") {
    return Ack{count(object, "task")};
  }
  throw ProtocolError(fmt::format("there is no message \"{}\"", printable(type, 40)));
}

std::string printable(std::string_view text, std::size_t max_bytes) {
  // A round trip through the JSON writer replaces what is not UTF-8.
  const bool cut = text.size() > max_bytes;
  const std::string quoted = line(json(std::string(text.substr(0, max_bytes))));
  std::string clean = json::parse(quoted).get<std::string>();
  for (char& character : clean) {
    const auto code = static_cast<unsigned char>(character);
    if ((code < 0x20 && character != '\n') || code == 0x7F) {
      character = ' ';
    }
  }
  return cut ? clean + "..." : clean;
}

}  // namespace numcheck::run
