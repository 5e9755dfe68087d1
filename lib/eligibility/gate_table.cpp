#include "eligibility/gate_table.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "eligibility/gate_text.hpp"

namespace numcheck::eligibility {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 7> kSelectors = {"cudnn", "fused_interface", "fused_kernels", "fused_layer",
                                                        "flash", "fused_case",      "unfused"};
constexpr std::array<std::string_view, 3> kAnswers = {"refused", "documented_only", "not_asked"};
constexpr std::array<std::string_view, 3> kChoices = {"fused", "flash", "unfused"};

[[noreturn]] void fail(std::string_view place, std::string_view what) {
  throw core::InternalError(fmt::format("configs/attention_gates.json: {}: {}", place, what));
}

template <class Enum>
std::optional<Enum> find(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<Enum>(found - names.begin()));
}

template <class Enum>
Enum named(std::span<const std::string_view> names, const Json& value, std::string_view place) {
  const auto found = value.is_string() ? find<Enum>(names, value.get<std::string>()) : std::nullopt;
  if (!found) {
    fail(place, fmt::format("unknown word {}", value.dump()));
  }
  return *found;
}

std::string text(const Json& value, std::string_view place) {
  if (!value.is_string() || value.get<std::string>().empty()) {
    fail(place, "must be a text");
  }
  return value.get<std::string>();
}

const Json& member(const Json& object, const char* key, std::string_view place) {
  const auto found = object.find(key);
  if (found == object.end()) {
    fail(place, fmt::format("{} is missing", key));
  }
  return *found;
}

void require_object(const Json& value, std::initializer_list<std::string_view> keys, std::string_view place) {
  if (!value.is_object()) {
    fail(place, "must be an object");
  }
  for (const auto& [key, unused] : value.items()) {
    if (std::ranges::find(keys, key) == keys.end()) {
      fail(place, fmt::format("unknown key \"{}\"", key));
    }
  }
}

const Json& require_list(const Json& value, std::string_view place) {
  if (!value.is_array() || value.empty()) {
    fail(place, "must be a list with entries");
  }
  return value;  // NOLINT(bugprone-return-const-ref-from-parameter): a part of the file, which outlives its decoding
}

std::int64_t number(NumberFact fact, const Json& value, std::string_view place) {
  if (fact == NumberFact::cudnn) {
    const std::int64_t version = cudnn_number(text(value, place));
    if (version == 0) {
      fail(place, fmt::format("{} is not a version such as \"9.10.2\"", value.dump()));
    }
    return version;
  }
  if (!value.is_number_integer()) {
    fail(place, "must be an integer");
  }
  return value.get<std::int64_t>();
}

NumberRange number_range(NumberFact fact, const Json& value, std::string_view place) {
  if (!value.is_object()) {
    const std::int64_t only = number(fact, value, place);
    return {only, only, 1};
  }
  require_object(value, {"from", "to", "below", "multiple_of"}, place);
  NumberRange range;
  for (const auto& [key, bound] : value.items()) {
    if (key == "multiple_of") {
      range.multiple_of = bound.is_number_integer() ? bound.get<std::int64_t>() : 0;
    } else {
      const std::int64_t at = number(fact, bound, place);
      (key == "from" ? range.from : range.to) = key == "below" ? at - 1 : at;
    }
  }
  if (value.empty() || range.from > range.to || range.multiple_of < 1 ||
      (value.contains("to") && value.contains("below"))) {
    fail(place, "is not a range");
  }
  return range;
}

NumberIs number_term(NumberFact fact, const Json& value, std::string_view place) {
  NumberIs term{fact, {}};
  if (!value.is_array()) {
    term.ranges.push_back(number_range(fact, value, place));
    return term;
  }
  for (const Json& one : require_list(value, place)) {
    term.ranges.push_back(number_range(fact, one, place));
  }
  return term;
}

WordIs word_term(WordFact fact, const Json& value, std::string_view place) {
  const std::vector<std::string_view> legal = legal_words(fact);
  WordIs term{fact, {}};
  for (const Json& one : value.is_array() ? require_list(value, place) : Json::array({value})) {
    if (std::ranges::find(legal, text(one, place)) == legal.end()) {
      fail(place, fmt::format("unknown word {}", one.dump()));
    }
    term.words.push_back(one.get<std::string>());
  }
  return term;
}

bool flag(const Json& value, std::string_view place) {
  if (!value.is_boolean()) {
    fail(place, "must be true or false");
  }
  return value.get<bool>();
}

Condition condition(const Json& value, std::string_view place) {
  if (!value.is_object() || value.empty()) {
    fail(place, "must be an object with terms");
  }
  Condition all;
  for (const auto& [key, what] : value.items()) {
    const std::string inside = fmt::format("{}.{}", place, key);
    if (key == "any") {
      AnyOf any;
      for (const Json& one : require_list(what, inside)) {
        any.conditions.push_back(condition(one, inside));
      }
      all.terms.emplace_back(std::move(any));
    } else if (key == "not") {
      all.terms.emplace_back(NoneOf{{condition(what, inside)}});
    } else if (const auto of_number = find<NumberFact>(kNumberFacts, key)) {
      all.terms.emplace_back(number_term(*of_number, what, inside));
    } else if (const auto of_word = find<WordFact>(kWordFacts, key)) {
      all.terms.emplace_back(word_term(*of_word, what, inside));
    } else if (const auto of_flag = find<FlagFact>(kFlagFacts, key)) {
      all.terms.emplace_back(FlagIs{*of_flag, flag(what, inside)});
    } else {
      fail(place, fmt::format("unknown key \"{}\"", key));
    }
  }
  return all;
}

Gate gate(const Json& row, std::size_t index) {
  const std::string position = fmt::format("gates[{}]", index);
  require_object(row, {"selector", "name", "refuses", "sentence", "source", "answer"}, position);
  Gate gate;
  gate.name = text(member(row, "name", position), position);
  const std::string place = fmt::format("{} ({})", position, gate.name);
  gate.selector = named<Selector>(kSelectors, member(row, "selector", place), place);
  gate.refuses = condition(member(row, "refuses", place), place + ".refuses");
  gate.sentence = text(member(row, "sentence", place), place);
  gate.source = text(member(row, "source", place), place);
  if (const auto answer = row.find("answer"); answer != row.end()) {
    gate.answer = named<Answer>(kAnswers, *answer, place);
  }
  static_cast<void>(fill_in(gate.sentence, Facts(op::AttentionParams(), {})));
  return gate;
}

Preference preference(const Json& row, std::size_t index) {
  const std::string place = fmt::format("preference[{}]", index);
  require_object(row, {"when", "order", "source"}, place);
  Preference made{
      condition(member(row, "when", place), place + ".when"), {}, text(member(row, "source", place), place)};
  for (const Json& one : require_list(member(row, "order", place), place)) {
    made.order.push_back(named<TeChoice>(kChoices, one, place));
  }
  return made;
}

/// The document. A key that an object has twice is an error: the parser would keep the last.
Json parse(std::string_view json) {
  std::vector<std::set<std::string>> keys;
  const auto note = [&keys](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second) {
      fail("the file", fmt::format("an object has two keys {}", value.dump()));
    }
    return true;
  };
  Json root = Json::parse(json, note, false);
  if (root.is_discarded()) {
    fail("the file", "is not JSON");
  }
  return root;
}

}  // namespace

GateTable decode_gates(std::string_view json) {
  const Json root = parse(json);
  require_object(root, {"comment", "checked_with", "preference", "gates"}, "the file");
  const Json& versions = member(root, "checked_with", "the file");
  require_object(versions, {"cudnn", "transformer_engine"}, "checked_with");
  GateTable table;
  table.cudnn = text(member(versions, "cudnn", "checked_with"), "checked_with");
  table.transformer_engine = text(member(versions, "transformer_engine", "checked_with"), "checked_with");
  for (const Json& row : require_list(member(root, "preference", "the file"), "preference")) {
    table.preferences.push_back(preference(row, table.preferences.size()));
  }
  for (const Json& row : require_list(member(root, "gates", "the file"), "gates")) {
    Gate made = gate(row, table.gates.size());
    for (const Gate& other : table.gates) {
      if (other.selector == made.selector && other.name == made.name) {
        fail(fmt::format("gates[{}]", table.gates.size()), fmt::format("there are two gates {}", made.name));
      }
    }
    table.gates.push_back(std::move(made));
  }
  return table;
}

std::int64_t cudnn_number(std::string_view version) {
  std::array<std::int64_t, 3> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), parts[i]);
    const bool last = i + 1 == parts.size();
    if (error != std::errc() || parts[i] < 0 || parts[i] > 99 || (!last && (end == version.end() || *end != '.')) ||
        (last && end != version.end())) {
      return 0;
    }
    version.remove_prefix(static_cast<std::size_t>(end - version.data()) + (last ? 0 : 1));
  }
  const bool old = parts[0] < 9;
  return old ? parts[0] * 1000 + parts[1] * 100 + parts[2] : parts[0] * 10000 + parts[1] * 100 + parts[2];
}

}  // namespace numcheck::eligibility
