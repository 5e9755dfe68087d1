#include "diagnose/diagnosis_json.hpp"

#include <vector>

#include <nlohmann/json.hpp>

namespace numcheck::diagnose {
namespace {

using nlohmann::json;

json explanation_json(const Explanation& explanation) {
  json object = {{"name", explanation.name}, {"cause", explanation.cause}, {"share", explanation.share}};
  if (!explanation.is_finding) {
    object["rms_left"] = explanation.rms_left;
    object["equal_bits"] = explanation.equal_bits;
    object["of"] = explanation.of;
  }
  if (explanation.passes) {
    object["is_consistent_only"] = explanation.is_consistent_only;
    object["remedy"] = explanation.remedy;
  } else {
    object["failing"] = explanation.failing;
  }
  return object;
}

const char* verdict_name(Diagnosis::Kind kind) {
  switch (kind) {
    case Diagnosis::Kind::correct:
      return "correct";
    case Diagnosis::Kind::undecided:
      return "undecided";
    case Diagnosis::Kind::misbehaved:
      return "misbehaved";
    case Diagnosis::Kind::explained:
    case Diagnosis::Kind::unexplained:
      break;
  }
  return "wrong";
}

json list_json(const std::vector<Explanation>& explanations) {
  json list = json::array();
  for (const Explanation& explanation : explanations) {
    list.push_back(explanation_json(explanation));
  }
  return list;
}

json excluded_json(const Diagnosis& diagnosis) {
  json list = list_json(diagnosis.excluded);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i]["failing"] = diagnosis.excluded[i].failing;  // of those that pass, too: why others are better
    list[i]["real_share"] = real_share(diagnosis, diagnosis.excluded[i]);
  }
  return list;
}

json tolerances_json(const Diagnosis& diagnosis) {
  json object = json::object();
  for (const auto& [port, facts] : diagnosis.elements) {
    if (facts.tolerance.has_value()) {
      object[port] = {{"rtol", facts.tolerance->rtol}, {"atol", facts.tolerance->atol}};
    }
  }
  return object;
}

}  // namespace

json diagnosis_json(const Subject& subject, const Diagnosis& diagnosis, std::span<const std::string> notes) {
  const bool is_measured = diagnosis.of != 0;  // a right result is not
  return {{"case", plan::case_to_json(subject.c)},
          {"verdict", verdict_name(diagnosis.kind)},
          {"explained", !diagnosis.passing.empty() && !diagnosis.passing.front().is_consistent_only},
          {"output", diagnosis.port},
          {"failing", diagnosis.declared.failing},
          {"rms_error", is_measured ? json(diagnosis.rms_error) : json()},
          {"equal_bits", is_measured ? json(diagnosis.equal_bits) : json()},
          {"causes", list_json(diagnosis.passing)},
          {"excluded", excluded_json(diagnosis)},
          {"pairs_tried", diagnosis.pairs_tried},
          {"pairs_left", diagnosis.pairs_left},
          {"not_tried", diagnosis.untried},
          {"tolerances", tolerances_json(diagnosis)},
          {"notes", std::vector<std::string>(notes.begin(), notes.end())}};
}

}  // namespace numcheck::diagnose
