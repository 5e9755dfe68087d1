#include "report/override_sentences.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/number.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

/// The effect of one state on the rows of one op x mode x backend.
struct Effect {
  std::size_t rows = 0;
  std::size_t identical = 0;
  std::size_t reclassified = 0;
  std::set<std::string> before;
  std::set<std::string> after;
  std::vector<double> error_before;  ///< of the rows whose bits changed
  std::vector<double> error_after;
};

std::string class_labels(const std::set<std::string>& classes) {
  std::vector<std::string> words;
  words.reserve(classes.size());
  for (const std::string& name : classes) {
    words.push_back(class_label(name));
  }
  return fmt::format("{}", fmt::join(words, " or "));
}

Effect effect_of(const std::vector<const json*>& rows, const std::string& state) {
  Effect effect;
  for (const json* row : rows) {
    const json& states = row->at("states");
    const std::string base = row->at("base").get<std::string>();
    if (state == base || !states.contains(state)) {
      continue;
    }
    ++effect.rows;
    if (states.at(state).at("bits") == "identical") {
      ++effect.identical;
      continue;
    }
    effect.error_before.push_back(number_value(states.at(base).at("rel_l2")));
    effect.error_after.push_back(number_value(states.at(state).at("rel_l2")));
    if (states.at(base).at("observed") != states.at(state).at("observed")) {
      ++effect.reclassified;
      effect.before.merge(states.at(base).at("observed").get<std::set<std::string>>());
      effect.after.merge(states.at(state).at("observed").get<std::set<std::string>>());
    }
  }
  return effect;
}

double median(std::vector<double> values) {
  // A total order, because NaN would break sort; it ranks above infinity.
  std::ranges::sort(values, [](double one, double other) { return std::strong_order(one, other) < 0; });
  return values[values.size() / 2];
}

std::string clause(const std::string& state, const Effect& effect) {
  if (effect.identical == effect.rows) {
    return fmt::format("override {} changes nothing, bit for bit", state);
  }
  const std::size_t changed = effect.rows - effect.identical;
  const std::string where = changed == effect.rows ? "" : fmt::format(" in {} of {} shapes", changed, effect.rows);
  const std::string errors =
      fmt::format("error {:.1e} -> {:.1e}", median(effect.error_before), median(effect.error_after));
  if (effect.reclassified == 0 || effect.before.empty() || effect.after.empty()) {
    return fmt::format("override {} changes bits{} but no precision class: {}", state, where, errors);
  }
  return fmt::format("override {} turns {} into {}{}: {}", state, class_labels(effect.before),
                     class_labels(effect.after), where, errors);
}

/// States that change something come first.
std::string sentence(const std::string& subject, const std::vector<const json*>& rows) {
  std::vector<std::string> changed_clauses;
  std::vector<std::string> unchanged;
  std::vector<std::string> unchanged_states;
  for (const std::string state : {"1", "0"}) {
    const Effect effect = effect_of(rows, state);
    if (effect.rows == 0) {
      continue;
    }
    if (effect.identical < effect.rows) {
      changed_clauses.push_back(clause(state, effect));
    } else {
      unchanged.push_back(clause(state, effect));
      unchanged_states.insert(unchanged_states.begin(), state);
    }
  }
  if (changed_clauses.empty()) {
    unchanged_states.insert(unchanged_states.begin(), rows.front()->at("base").get<std::string>());
    const std::string last = unchanged_states.back();
    unchanged_states.pop_back();
    return fmt::format("{}: no effect: bitwise identical under {} and {}", subject, fmt::join(unchanged_states, ", "),
                       last);
  }
  changed_clauses.insert(changed_clauses.end(), unchanged.begin(), unchanged.end());
  return fmt::format("{}: {}", subject, fmt::join(changed_clauses, "; "));
}

}  // namespace

std::string class_label(std::string_view class_name) {
  static const std::map<std::string_view, std::string_view> words = {{"fp32", "FP32"},
                                                                     {"tf32_rne", "TF32"},
                                                                     {"tf32_truncated", "truncated TF32"},
                                                                     {"bf16_inputs", "BF16 inputs"},
                                                                     {"fp8_promoted", "promoted sums"},
                                                                     {"fp8_rarely_promoted", "rarely promoted sums"},
                                                                     {"fp8_fast", "fast accumulation"},
                                                                     {"native", "native"}};
  const auto found = words.find(class_name);
  return std::string(found == words.end() ? class_name : found->second);
}

nlohmann::json override_sentences(const nlohmann::json& rows) {
  using Subject = std::tuple<std::string, std::string, std::string>;
  std::vector<std::pair<Subject, std::vector<const json*>>> groups;
  for (const json& row : rows) {
    const Subject subject{row.at("op").get<std::string>(), row.at("mode").get<std::string>(),
                          row.at("backend").get<std::string>()};
    auto at = std::ranges::find(groups, subject, &decltype(groups)::value_type::first);
    if (at == groups.end()) {
      groups.push_back({subject, {}});
      at = std::prev(groups.end());
    }
    at->second.push_back(&row);
  }
  json sentences = json::array();
  for (const auto& [subject, members] : groups) {
    const auto& [op, mode, backend] = subject;
    const char* label = members.front()->at("predicted").get<bool>() ? ", predicted" : "";
    sentences.push_back(sentence(fmt::format("{} {} ({}{})", op, mode, backend, label), members));
  }
  return sentences;
}

}  // namespace numcheck::report
