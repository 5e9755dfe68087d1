#include "plan/plan.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/strings.hpp"
#include "plan/baseline.hpp"
#include "plan/case_spec.hpp"
#include "plan/expand.hpp"
#include "plan/extends.hpp"
#include "plan/source.hpp"
#include "plan/sweep_rules.hpp"
#include "plan/values.hpp"

namespace numcheck::plan {
namespace {

constexpr std::array<std::string_view, 10> kPlanKeys = {"$schema", "version", "name",     "description", "seed",
                                                        "extends", "include", "baseline", "defaults",    "cases"};
constexpr std::size_t kMaxName = 200;
// The most values that are decoded; those of "defaults" count once for every case object.
constexpr std::uint64_t kMaxDecodedValues = 2'000'000;

class PlanDecoder {
 public:
  PlanDecoder(const Node& root, const Vocabulary& vocabulary, const Limits& limits, Reporter& reporter)
      : root_(root), vocabulary_(vocabulary), limits_(limits), reporter_(reporter) {}

  Plan decode(const std::string& path) {
    check_keys(root_, kPlanKeys, "a plan", reporter_);
    if (root_.find("version") == nullptr) {
      reporter_.error(root_, "the plan has no \"version\"", {"write \"version\": 1", {}});
    }
    Plan plan;
    plan.name = decode_text("name", std::filesystem::path(path).stem().string());
    plan.description = decode_text("description", "");
    if (const Node* seed = root_.find("seed")) {
      plan.seed =
          decode_unsigned(*seed, "\"seed\"", 0, std::numeric_limits<std::uint64_t>::max(), reporter_).value_or(0);
    }
    if (const Node* baseline = root_.find("baseline")) {
      plan.baseline = decode_baseline(*baseline, path, limits_, reporter_);
    }
    const std::vector<CaseSpec> specs = decode_cases();
    for (const CaseSpec& spec : specs) {
      for (const XFailRule& rule : spec.xfail) {
        warn_of_expiry(rule, limits_.today, reporter_);
      }
    }
    const std::size_t errors = reporter_.error_count();
    check_case_count(specs, limits_, reporter_);
    if (reporter_.error_count() == errors) {
      plan.cases = expand(specs, plan.seed, reporter_);
    }
    return plan;
  }

 private:
  std::string decode_text(std::string_view key, std::string fallback) {
    const Node* node = root_.find(key);
    if (node == nullptr) {
      return fallback;
    }
    if (!node->is(Node::Kind::text)) {
      wrong_kind(*node, quote(key), "a string", reporter_);
      return fallback;
    }
    const bool control = std::ranges::any_of(node->text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (key == "name" && (node->text.empty() || node->text.size() > kMaxName || control)) {
      reporter_.error(*node, fmt::format("\"name\" must be one line of 1 to {} bytes", kMaxName));
      return fallback;
    }
    return node->text;
  }

  const Node* decode_defaults() {
    const Node* defaults = root_.find("defaults");
    if (defaults != nullptr && !defaults->is(Node::Kind::object)) {
      wrong_kind(*defaults, "\"defaults\"", "an object", reporter_);
      return nullptr;
    }
    if (defaults != nullptr) {
      check_defaults(*defaults, vocabulary_, reporter_);
    }
    return defaults;
  }

  std::vector<CaseSpec> decode_cases() {
    const Node* defaults = decode_defaults();
    const Node* cases = root_.find("cases");
    std::vector<CaseSpec> specs;
    if (cases == nullptr) {
      reporter_.error(root_, "the plan has no \"cases\"",
                      {R"("cases": [{"op": ..., "params": {...}, "mode": ...}])", {}});
      return specs;
    }
    if (!cases->is(Node::Kind::array)) {
      wrong_kind(*cases, "\"cases\"", "a list of objects", reporter_);
      return specs;
    }
    if (cases->items.empty()) {
      reporter_.error(*cases, "\"cases\" is empty: there is nothing to run");
    }
    const std::size_t inherited = defaults == nullptr ? 0 : count_values(*defaults);
    std::uint64_t decoded = 0;
    for (const Node& item : cases->items) {
      decoded += inherited;
      if (decoded > kMaxDecodedValues) {
        reporter_.error(item, fmt::format("\"defaults\" has {} values, too many for this many cases", inherited),
                        {R"(write long lists as {"from": ..., "to": ..., "step": ...})", {}});
        break;
      }
      if (std::optional<CaseSpec> spec = decode_case(item, defaults, vocabulary_, reporter_)) {
        specs.push_back(std::move(*spec));
      }
      if (reporter_.saturated()) {
        break;
      }
    }
    return specs;
  }

  const Node& root_;
  const Vocabulary& vocabulary_;
  const Limits& limits_;
  Reporter& reporter_;
};

/// What the digest of a plan covers: everything but prose and what results are compared with.
std::string digest_text(Node root) {
  std::erase_if(root.members, [](const Member& m) { return m.key == "description" || m.key == "baseline"; });
  return canonical_text(root);
}

}  // namespace

Plan load_plan(const std::string& path, const Vocabulary& vocabulary, const Limits& limits) {
  const core::FileText content = core::read_regular_file(path, limits.max_file_bytes);
  if (!content.problem.empty()) {
    Diagnostic diagnostic;
    diagnostic.file = path;
    diagnostic.text = "cannot read the plan: " + content.problem;
    throw PlanError({diagnostic});
  }
  return parse_plan(content.text, path, vocabulary, limits);
}

Plan parse_plan(std::string_view text, const std::string& path, const Vocabulary& vocabulary, const Limits& limits) {
  if (text.size() > limits.max_file_bytes) {
    Diagnostic diagnostic;
    diagnostic.file = path;
    diagnostic.text = "the plan is larger than " + core::human_bytes(limits.max_file_bytes);
    throw PlanError({diagnostic});
  }
  Sources sources;
  Reporter reporter(sources);
  const Node root = load_merged(text, path, limits, sources, reporter);
  reporter.throw_if_failed();
  reporter.set_root(root);
  Plan plan = PlanDecoder(root, vocabulary, limits, reporter).decode(path);
  reporter.throw_if_failed();
  plan.digest = core::digest_of(digest_text(root)).hex();
  plan.warnings = reporter.warnings();
  for (const Source& source : sources) {
    plan.files.push_back(source.name);
  }
  return plan;
}

}  // namespace numcheck::plan
