// What the coordinator says.
#include <algorithm>
#include <array>
#include <optional>

#include "core/dtype.hpp"
#include "worker/channel.hpp"
#include "worker/json_fields.hpp"
#include "worker/protocol.hpp"

namespace numcheck::worker {
namespace {

using nlohmann::json;
using namespace fields;

constexpr std::array<const char*, 4> kRoles{"input", "scale", "output", "amax"};
constexpr std::size_t kQuestionBytes = kMaxMessageBytes / 2;  ///< of the cases in a question

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
          {"scaled_by", port.scaled_by},
          {"block_rows", port.block_rows},
          {"block_cols", port.block_cols},
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
  port.scaled_by = order.names.emplace_back(text(object, "scaled_by"));
  port.block_rows = extent(object, "block_rows");
  port.block_cols = extent(object, "block_cols");
  order.ports.push_back(port);
  order.places.push_back({count(object, "arena"), count(object, "place"), count(object, "bytes")});
}

json options_to_json(const ExecuteOptions& options) {
  return {{"repeats", options.repeats}, {"inject", options.inject}, {"classify", options.classify}};
}

ExecuteOptions options_from(const json& object) {
  return {small(object, "repeats"), text(object, "inject"), boolean(object, "classify")};
}

QuestionOrder question_from(const json& object, plan::OpLookup lookup) {
  QuestionOrder question{count(object, "task"), options_from(member(object, "options")), {}};
  for (const json& c : list(object, "cases")) {
    AskedCase& asked = question.cases.emplace_back();
    try {
      asked.c = plan::case_from_json(c, lookup);
    } catch (const std::exception& error) {
      asked.mistake = error.what();
    }
  }
  return question;
}

TaskOrder order_from(const json& object, plan::OpLookup lookup) {
  TaskOrder order;
  order.task = count(object, "task");
  for (const json& arena : list(object, "arenas")) {
    order.arenas.push_back({count(arena, "id"), count(arena, "bytes"), boolean(arena, "writable")});
  }
  try {
    order.c = plan::case_from_json(member(object, "case"), lookup);
    order.options = options_from(member(object, "options"));
    for (const json& port : list(object, "ports")) {
      add_port(order, port);
    }
  } catch (const std::exception& error) {
    order.mistake = error.what();
  }
  return order;
}

}  // namespace

std::string encode_task(std::uint64_t task, const plan::Case& c, const ExecuteOptions& options,
                        std::span<const ArenaFact> arenas, std::span<const HostPort> ports,
                        std::span<const PortPlace> places) {
  json arena_list = json::array();
  for (const ArenaFact& arena : arenas) {
    arena_list.push_back({{"id", arena.id}, {"bytes", arena.bytes}, {"writable", arena.writable}});
  }
  json port_list = json::array();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    port_list.push_back(port_to_json(*ports[i].port, places[i]));
  }
  return line({{"type", "task"},
               {"task", task},
               {"case", plan::case_to_json(c)},
               {"options", options_to_json(options)},
               {"arenas", std::move(arena_list)},
               {"ports", std::move(port_list)}});
}

EncodedQuestion encode_question(std::uint64_t task, std::span<const plan::Case* const> cases,
                                const ExecuteOptions& options) {
  EncodedQuestion question;
  json list = json::array();
  for (std::size_t bytes = 0; question.cases < std::min(cases.size(), kMaxCasesOfQuestion); ++question.cases) {
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
    return order_from(object, lookup);
  }
  if (type == "ask") {
    return question_from(object, lookup);
  }
  if (type == "ack") {
    return Ack{count(object, "task")};
  }
  throw ProtocolError(fmt::format("there is no message \"{}\"", printable(type, 40)));
}

}  // namespace numcheck::worker
