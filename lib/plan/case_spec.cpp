#include "plan/case_spec.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "plan/backend_name.hpp"
#include "plan/settings.hpp"
#include "plan/sweep_rules.hpp"

namespace numcheck::plan {
namespace {

constexpr std::array<std::string_view, 15> kCaseKeys = {
    "op",  "params",  "mode",  "backend", "inputs", "environment", "algorithms", "tolerance",
    "zip", "exclude", "xfail", "tags",    "seed",   "timeout_s",   "select"};

class CaseDecoder {
 public:
  CaseDecoder(const Node& node, const Node* defaults, const Vocabulary& vocabulary, Reporter& reporter)
      : node_(node), defaults_(defaults), vocabulary_(vocabulary), reporter_(reporter) {}

  std::optional<CaseSpec> decode() {
    spec_.node = &node_;
    decode_op();
    check_case_keys();
    decode_inputs_axis();
    decode_backends();
    decode_seeds();
    decode_environments();
    decode_rest();
    if (spec_.op == nullptr) {
      decode_modes();
      return {};
    }
    decode_params();
    decode_modes();
    complete_ = decode_exclude(spec_, get("exclude"), vocabulary_, reporter_) && complete_;
    complete_ = decode_xfail(spec_, get("xfail"), vocabulary_, reporter_) && complete_;
    complete_ = complete_ && decode_zip(spec_, get("zip"), reporter_);
    return complete_ ? std::optional(std::move(spec_)) : std::nullopt;
  }

 private:
  [[nodiscard]] const Node* get(std::string_view key) const {
    const Node* own = node_.find(key);
    return own != nullptr || defaults_ == nullptr ? own : defaults_->find(key);
  }

  /// A parameter beside "params" instead of in it is the most likely unknown key.
  void check_case_keys() {
    std::vector<std::string_view> misplaced;
    for (const Member& member : node_.members) {
      if (spec_.op != nullptr && op::field_index(*spec_.op, member.key) &&
          std::ranges::find(kCaseKeys, member.key) == kCaseKeys.end()) {
        misplaced.push_back(member.key);
        reporter_.error(
            member, "unknown key " + quote(member.key),
            {fmt::format("it is a parameter of {0}: \"params\": {{\"{1}\": ...}}", spec_.op->name, member.key), {}});
      }
    }
    check_keys(node_, kCaseKeys, "a case", reporter_, misplaced);
    params_misplaced_ = !misplaced.empty();
  }

  void decode_op() {
    std::vector<std::string_view> names;
    for (const op::Op* op : vocabulary_.ops) {
      names.push_back(op->name);
    }
    const Node* node = get("op");
    if (node == nullptr) {
      reporter_.error(node_, "this case has no \"op\"", {suggestion("", names, "ops are:"), {}});
    } else if (!node->is(Node::Kind::text)) {
      wrong_kind(*node, "\"op\"", "a string", reporter_, "write another case object for another op");
    } else {
      const auto found = std::ranges::find(vocabulary_.ops, node->text, [](const op::Op* op) { return op->name; });
      if (found != vocabulary_.ops.end()) {
        spec_.op = *found;
        return;
      }
      reporter_.error(*node, "unknown op " + quote(node->text), {suggestion(node->text, names, "ops are:"), {}});
    }
    complete_ = false;
  }

  void decode_params() {
    const Node* own = params_object(&node_);
    const Node* inherited = defaults_ == nullptr ? nullptr : params_object(defaults_);
    if (!params_readable_) {
      return;
    }
    spec_.params_node = own != nullptr ? own : inherited != nullptr ? inherited : &node_;
    const std::vector<op::Field>& fields = spec_.op->fields();
    if (own != nullptr) {
      check_parameter_names(*own, fields);
    }
    for (const op::Field& field : fields) {
      const Node* value = own == nullptr ? nullptr : own->find(field.name);
      if (value == nullptr && inherited != nullptr && (value = inherited->find(field.name)) != nullptr) {
        spec_.inherited_params = inherited;
      }
      spec_.params.push_back(decode_param(value, field));
    }
  }

  const Node* params_object(const Node* owner) {
    const Node* params = owner->find("params");
    if (params != nullptr && !params->is(Node::Kind::object)) {
      wrong_kind(*params, "\"params\"", "an object", reporter_);
      params_readable_ = false;
      complete_ = false;
      return nullptr;
    }
    return params;
  }

  void check_parameter_names(const Node& params, const std::vector<op::Field>& fields) {
    std::vector<std::string_view> names;
    for (const op::Field& field : fields) {
      names.push_back(field.name);
    }
    for (const Member& member : params.members) {
      if (member.key != "$comment" && std::ranges::find(names, member.key) == names.end()) {
        const bool is_case_key = std::ranges::find(kCaseKeys, member.key) != kCaseKeys.end();
        reporter_.error(member, fmt::format("{} has no parameter {}", spec_.op->name, quote(member.key)),
                        {is_case_key ? fmt::format("\"{}\" belongs beside \"params\", not in it", member.key)
                                     : suggestion(member.key, names, fmt::format("{} has:", spec_.op->name)),
                         {}});
        complete_ = false;
      }
    }
  }

  ValueAxis decode_param(const Node* value, const op::Field& field) {
    ValueAxis fallback;
    fallback.ranges.push_back({field.fallback, field.fallback, false, 1});
    if (value == nullptr) {
      if (field.required && !(params_misplaced_ && node_.find(field.name) != nullptr)) {
        reporter_.error(*spec_.params_node,
                        fmt::format("{} needs {}: {}", spec_.op->name, quote(field.name), field.doc));
      }
      complete_ = complete_ && !field.required;
      return fallback;
    }
    std::optional<ValueAxis> axis = decode_axis(*value, field, reporter_);
    complete_ = complete_ && axis.has_value();
    return axis ? std::move(*axis) : fallback;
  }

  void decode_modes() {
    const Node* node = get("mode");
    if (node == nullptr) {
      reporter_.error(node_, "this case has no \"mode\"");
      complete_ = false;
      return;
    }
    for (const Node* element : elements_of(*node, "\"mode\"")) {
      const op::Mode* mode = decode_mode(*element, spec_.op, reporter_);
      complete_ = complete_ && mode != nullptr;
      spec_.modes.push_back(mode);
    }
  }

  void decode_inputs_axis() {
    const Node* node = get("inputs");
    if (node == nullptr) {
      spec_.inputs.push_back({data::make_distribution("normal"), {}});
      spec_.input_nodes.push_back(nullptr);
      return;
    }
    for (const Node* element : elements_of(*node, "\"inputs\"")) {
      std::optional<InputSpec> inputs = decode_inputs(*element, reporter_);
      complete_ = complete_ && inputs.has_value();
      spec_.inputs.push_back(inputs ? std::move(*inputs) : InputSpec{});
      spec_.input_nodes.push_back(element);
    }
  }

  void decode_backends() {
    const Node* node = get("backend");
    if (node == nullptr) {
      spec_.backends.emplace_back(kAutoBackend);
      return;
    }
    for (const Node* element : elements_of(*node, "\"backend\"")) {
      std::optional<std::string> backend = decode_backend(*element, vocabulary_, reporter_);
      complete_ = complete_ && backend.has_value();
      spec_.backends.push_back(backend.value_or(""));
    }
  }

  void decode_seeds() {
    const Node* node = get("seed");
    if (node == nullptr) {
      return;
    }
    for (const Node* element : elements_of(*node, "\"seed\"")) {
      const auto seed = decode_unsigned(*element, "\"seed\"", 0, std::numeric_limits<std::uint64_t>::max(), reporter_);
      complete_ = complete_ && seed.has_value();
      spec_.seeds.push_back(seed.value_or(0));
    }
  }

  void decode_environments() {
    const Node* node = get("environment");
    if (node == nullptr) {
      spec_.environments.emplace_back();
      return;
    }
    for (const Node* element : elements_of(*node, "\"environment\"")) {
      std::optional<Environment> environment = decode_environment(*element, reporter_);
      complete_ = complete_ && environment.has_value();
      spec_.environments.push_back(environment ? std::move(*environment) : Environment{});
    }
  }

  void decode_rest() {
    if (const Node* node = get("algorithms")) {
      keep(spec_.algorithms, decode_algorithms(*node, reporter_));
    }
    if (const Node* node = get("tolerance")) {
      keep(spec_.tolerance, decode_tolerance(*node, reporter_));
      check_statistics(*node);
    }
    if (const Node* node = get("tags")) {
      keep(spec_.tags, decode_tags(*node, reporter_));
    }
    if (const Node* node = get("timeout_s")) {
      spec_.timeout_s = decode_number(*node, "\"timeout_s\"", kMinTimeout, kMaxTimeout, reporter_);
      complete_ = complete_ && spec_.timeout_s.has_value();
    }
    if (const Node* node = get("select")) {
      decode_select(*node);
    }
  }

  /// Limits are set on what the op measures.
  void check_statistics(const Node& tolerance) {
    const Node* statistics = tolerance.is(Node::Kind::object) ? tolerance.find("statistics") : nullptr;
    if (statistics == nullptr || !statistics->is(Node::Kind::object) || spec_.op == nullptr) {
      return;
    }
    const std::span<const std::string_view> known = spec_.op->statistics;
    for (const Member& member : statistics->members) {
      if (member.key == "$comment" || std::ranges::find(known, member.key) != known.end()) {
        continue;
      }
      reporter_.error(member, fmt::format("{} has no statistic {}", spec_.op->name, quote(member.key)),
                      {known.empty() ? "it has none" : suggestion(member.key, known, "it has:"), {}});
      complete_ = false;
    }
  }

  void decode_select(const Node& node) {
    constexpr std::array<std::string_view, 2> kWords = {"all", "new_configurations"};
    const auto found = node.is(Node::Kind::text) ? std::ranges::find(kWords, node.text) : kWords.end();
    if (found == kWords.end()) {
      reporter_.error(node, "\"select\" must be \"all\" or \"new_configurations\"",
                      {suggestion(node.is(Node::Kind::text) ? node.text : "", kWords, ""), {}});
      complete_ = false;
      return;
    }
    spec_.only_if_new = *found == "new_configurations";
  }

  template <class T>
  void keep(T& target, std::optional<T> value) {
    complete_ = complete_ && value.has_value();
    if (value) {
      target = std::move(*value);
    }
  }

  std::vector<const Node*> elements_of(const Node& node, std::string_view what) {
    std::vector<const Node*> all = elements(node, what, reporter_);
    complete_ = complete_ && !all.empty();
    return all;
  }

  const Node& node_;
  const Node* defaults_;
  const Vocabulary& vocabulary_;
  Reporter& reporter_;
  CaseSpec spec_;
  bool complete_ = true;
  bool params_readable_ = true;
  bool params_misplaced_ = false;
};

}  // namespace

std::span<const std::string_view> case_keys() noexcept {
  return kCaseKeys;
}

std::optional<CaseSpec> decode_case(const Node& node, const Node* defaults, const Vocabulary& vocabulary,
                                    Reporter& reporter) {
  if (!node.is(Node::Kind::object)) {
    wrong_kind(node, "a case", "an object", reporter);
    return {};
  }
  return CaseDecoder(node, defaults, vocabulary, reporter).decode();
}

}  // namespace numcheck::plan
