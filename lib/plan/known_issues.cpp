#include "plan/known_issues.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/file.hpp"
#include "core/hash.hpp"
#include "plan/document.hpp"
#include "plan/match.hpp"
#include "plan/sweep_rules.hpp"

namespace numcheck::plan {
namespace {

constexpr std::array<std::string_view, 4> kFileKeys = {"$schema", "version", "description", "known_issues"};
constexpr std::array<std::string_view, 7> kIssueKeys = {"op", "match", "cause", "error", "reason", "link", "expires"};
constexpr std::string_view kExample = R"({"op": "gemm", "match": {"mode": "bf16"}, "reason": "..."})";

struct Issue {
  const op::Op* op = nullptr;
  XFailRule rule;
};

const op::Op* decode_op(const Node& issue, const Vocabulary& vocabulary, Reporter& reporter) {
  std::vector<std::string_view> names;
  for (const op::Op* op : vocabulary.ops) {
    names.push_back(op->name);
  }
  const Node* name = issue.find("op");
  if (name == nullptr) {
    reporter.error(issue, "this known issue has no \"op\"", {suggestion("", names, "ops are:"), {}});
    return nullptr;
  }
  if (!name->is(Node::Kind::text)) {
    wrong_kind(*name, "\"op\"", "the name of an op", reporter, suggestion("", names, "ops are:"));
    return nullptr;
  }
  const op::Op* op = vocabulary.lookup(name->text);
  if (op == nullptr) {
    reporter.error(*name, "unknown op " + quote(name->text), {suggestion(name->text, names, "ops are:"), {}});
  }
  return op;
}

std::vector<Issue> decode_issues(const Node& root, const Vocabulary& vocabulary, Reporter& reporter) {
  std::vector<Issue> issues;
  if (!root.is(Node::Kind::object)) {
    wrong_kind(root, "a file of known issues", "an object", reporter, R"({"version": 1, "known_issues": [...]})");
    return issues;
  }
  check_keys(root, kFileKeys, "a file of known issues", reporter);
  const Node* version = root.find("version");
  if (version == nullptr || !version->is(Node::Kind::number) || version->text != "1") {
    reporter.error(version == nullptr ? root : *version, "a file of known issues has \"version\": 1");
  }
  const Node* list = root.find("known_issues");
  if (list == nullptr || !list->is(Node::Kind::array)) {
    wrong_kind(list == nullptr ? root : *list, "\"known_issues\"", "a list", reporter, std::string(kExample));
    return issues;
  }
  for (const Node& item : list->items) {
    if (!item.is(Node::Kind::object)) {
      wrong_kind(item, "a known issue", "an object", reporter, std::string(kExample));
      continue;
    }
    check_keys(item, kIssueKeys, "a known issue", reporter);
    if (const op::Op* op = decode_op(item, vocabulary, reporter)) {
      if (std::optional<XFailRule> rule = decode_known_failure(item, *op, vocabulary, reporter)) {
        issues.push_back({op, std::move(*rule)});
      }
    }
  }
  return issues;
}

}  // namespace

KnownIssues add_known_issues(std::vector<Case>& cases, const std::string& path, const Vocabulary& vocabulary,
                             const Limits& limits) {
  const core::FileText content = core::read_regular_file(path, limits.max_file_bytes);
  if (!content.problem.empty()) {
    Diagnostic diagnostic;
    diagnostic.file = path;
    diagnostic.text = "cannot read the known issues: " + content.problem;
    throw PlanError({diagnostic});
  }
  return add_known_issues_from(content.text, cases, path, vocabulary, limits);
}

KnownIssues add_known_issues_from(std::string_view text, std::vector<Case>& cases, const std::string& path,
                                  const Vocabulary& vocabulary, const Limits& limits) {
  const Sources sources = {{path, std::string(text)}};
  Reporter reporter(sources);
  std::size_t values = 0;
  const Node root = parse_document(sources, 0, values, reporter);
  reporter.throw_if_failed();
  reporter.set_root(root);
  const std::vector<Issue> issues = decode_issues(root, vocabulary, reporter);
  reporter.throw_if_failed();
  std::vector<bool> matched(issues.size());
  for (Case& c : cases) {
    for (std::size_t i = 0; i < issues.size(); ++i) {
      const Issue& issue = issues[i];
      if (issue.op == c.op && matches(issue.rule.match, c)) {
        c.known_issues.push_back(issue.rule.xfail);
        matched[i] = true;
      }
    }
  }
  KnownIssues known{.digest = core::digest_of(canonical_text(root)).hex(), .entries = issues.size()};
  for (std::size_t i = 0; i < issues.size(); ++i) {
    warn_of_expiry(issues[i].rule, limits.today, reporter);
    if (!matched[i]) {
      known.unmatched.push_back(issues[i].rule.xfail.place);
    }
  }
  known.warnings = reporter.warnings();
  return known;
}

}  // namespace numcheck::plan
