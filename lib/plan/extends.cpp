#include "plan/extends.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/file.hpp"
#include "plan/document.hpp"
#include "plan/include.hpp"

namespace numcheck::plan {
namespace {

namespace fs = std::filesystem;

// The version of the plan language that this program reads.
constexpr std::string_view kVersion = "1";

constexpr std::size_t kMaxPath = 4096;
/// Every plan has at least one of these.
constexpr std::array<std::string_view, 9> kKeys = {R"("cases")",   R"("include")",     R"("defaults")",
                                                   R"("seed")",    R"("extends")",     R"("name")",
                                                   R"("version")", R"("description")", R"("$schema")"};

/// Why the text is not a plan; empty if it looks like one. Nothing is quoted from a file that was never meant to be a
/// plan.
std::string why_not_a_plan(std::string_view text) {
  const std::size_t first = skip_blank(text, 0);
  if (first == text.size() || text[first] != '{') {
    return R"(it is not a plan: a plan begins with "{")";
  }
  const auto has = [text](std::string_view key) { return text.find(key) != std::string_view::npos; };
  return std::ranges::any_of(kKeys, has) ? "" : "it is not a plan: it has none of a plan's keys";
}

void merge(Node& into, Node from) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < into.members.size(); ++i) {
    index.emplace(into.members[i].key, i);
  }
  into.where = from.where;
  for (Member& member : from.members) {
    const auto found = index.find(member.key);
    if (found == index.end()) {
      into.members.push_back(std::move(member));
      continue;
    }
    Member& old = into.members[found->second];
    if (old.value.is(Node::Kind::object) && member.value.is(Node::Kind::object)) {
      merge(old.value, std::move(member.value));
    } else {
      old.value = std::move(member.value);
    }
    old.key_where = member.key_where;
  }
}

class Loader {
 public:
  Loader(const Limits& limits, Sources& sources, Reporter& reporter)
      : limits_(limits), sources_(sources), reporter_(reporter) {}

  Node load_plan_text(std::string_view text, const std::string& path) {
    folder_ = fs::path(path).parent_path();
    bytes_ = text.size();
    return load(add_source(path, std::string(text)), path);
  }

 private:
  std::uint32_t add_source(const std::string& path, std::string text) {
    sources_.push_back({path, std::move(text)});
    canonical_.push_back(core::resolved_path(path));
    return static_cast<std::uint32_t>(sources_.size() - 1);
  }

  Node load(std::uint32_t file, const std::string& path) {
    const std::size_t errors = reporter_.error_count();
    Node root = parse_document(sources_, file, values_, reporter_);
    if (reporter_.error_count() != errors) {
      return {};
    }
    if (!root.is(Node::Kind::object)) {
      wrong_kind(root, "a plan", "an object", reporter_, "{\"version\": 1, \"cases\": [...]}");
      return {};
    }
    check_version(root);
    chain_.push_back(file);
    Node merged;
    merged.kind = Node::Kind::object;
    if (const Node* extends = root.find("extends")) {
      add_bases(merged, *extends, path);
    }
    if (const Node* include = root.find("include")) {
      std::vector<Node> included = included_cases(*include, path);
      put_first(root, include->where, std::move(included));
    }
    chain_.pop_back();
    std::erase_if(root.members, [](const Member& m) {
      return m.key == "$schema" || m.key == "extends" || m.key == "include" || m.key == "$comment";
    });
    merge(merged, std::move(root));
    return merged;
  }

  void check_version(const Node& root) {
    const Node* version = root.find("version");
    const bool integer = version != nullptr && version->is(Node::Kind::number) &&
                         version->text.find_first_not_of("0123456789") == std::string::npos;
    if (version == nullptr || (integer && version->text == kVersion)) {
      return;
    }
    if (!integer) {
      reporter_.error(*version, "\"version\" must be the integer 1");
    } else if (version->text == "0") {
      reporter_.error(*version, "there is no plan version 0", {"this program reads version 1", {}});
    } else {
      reporter_.error(*version, fmt::format("plan version {} is newer than this program", version->text.substr(0, 20)),
                      {"this program reads version 1; use a newer te-numcheck", {}});
    }
  }

  void add_bases(Node& merged, const Node& extends, const std::string& path) {
    const bool list = extends.is(Node::Kind::array);
    if (!list && !extends.is(Node::Kind::text)) {
      wrong_kind(extends, "\"extends\"", "a file name or a list of file names", reporter_);
      return;
    }
    const std::size_t count = list ? extends.items.size() : 1;
    for (std::size_t i = 0; i < count; ++i) {
      const Node& name = list ? extends.items[i] : extends;
      if (!name.is(Node::Kind::text)) {
        wrong_kind(name, "\"extends\"", "a file name", reporter_);
        continue;
      }
      Node base = load_other(name, "extends", path);
      if (base.is(Node::Kind::object)) {
        merge(merged, std::move(base));
      }
    }
  }

  std::vector<Node> included_cases(const Node& include, const std::string& path) {
    std::vector<Node> cases;
    for (const Inclusion& inclusion : decode_inclusions(include, reporter_)) {
      Node plan = load_other(*inclusion.file, "include", path);
      if (plan.is(Node::Kind::object)) {
        std::ranges::move(chosen_cases(std::move(plan), inclusion, reporter_), std::back_inserter(cases));
      }
    }
    return cases;
  }

  /// A plan's own cases follow those that it includes. Without any, it has those of its bases.
  static void put_first(Node& root, const Location& where, std::vector<Node> included) {
    auto own = std::ranges::find(root.members, "cases", &Member::key);
    if (own == root.members.end()) {
      Node list;
      list.kind = Node::Kind::array;
      list.where = where;
      root.members.push_back({"cases", where, std::move(list)});
      own = root.members.end() - 1;
    }
    if (own->value.is(Node::Kind::array)) {
      own->value.items.insert(own->value.items.begin(), std::move_iterator(included.begin()),
                              std::move_iterator(included.end()));
    }
  }

  /// The plan that `key`, "extends" or "include", names.
  Node load_other(const Node& name, std::string_view key, const std::string& path) {
    if (name.text.empty() || name.text.size() > kMaxPath || name.text.find('\0') != std::string::npos) {
      reporter_.error(name, fmt::format("\"{}\" must be the name of a file", key));
      return {};
    }
    if (++loads_ > kMaxFiles) {
      reporter_.error(name, fmt::format("the plan reads more than {} files", kMaxFiles));
      return {};
    }
    const fs::path target = (fs::path(path).parent_path() / name.text).lexically_normal();
    const fs::path identity = core::resolved_path(target);
    if (limits_.sandbox && !core::is_inside(folder_, target)) {
      reporter_.error(name, fmt::format("{} is outside the plan's folder", quote(name.text)),
                      {"--sandbox allows only files in or below the plan's folder", {}});
      return {};
    }
    const auto known = std::ranges::find(canonical_, identity);
    if (known != canonical_.end()) {
      const auto file = static_cast<std::uint32_t>(known - canonical_.begin());
      if (std::ranges::find(chain_, file) != chain_.end()) {
        reporter_.error(name, fmt::format("\"{}\" is circular: {}", key, cycle(file)));
        return {};
      }
      return load(file, target.string());
    }
    core::FileText content =
        core::read_regular_file(target, limits_.max_file_bytes - std::min(bytes_, limits_.max_file_bytes));
    if (content.problem.empty()) {
      content.problem = why_not_a_plan(content.text);
    }
    if (!content.problem.empty()) {
      reporter_.error(name, fmt::format("cannot read {}: {}", quote(target.string()), content.problem),
                      {"paths are relative to the file that names them", {}});
      return {};
    }
    bytes_ += content.text.size();
    return load(add_source(target.string(), std::move(content.text)), target.string());
  }

  [[nodiscard]] std::string cycle(std::uint32_t file) const {
    std::string text;
    for (auto at = std::ranges::find(chain_, file); at != chain_.end(); ++at) {
      text += sources_[*at].name + " -> ";
    }
    return text + sources_[file].name;
  }

  const Limits& limits_;
  Sources& sources_;
  Reporter& reporter_;
  fs::path folder_;
  std::vector<fs::path> canonical_;   ///< paths of sources_, by index
  std::vector<std::uint32_t> chain_;  ///< files being loaded, outermost first
  std::uint64_t bytes_ = 0;
  std::size_t values_ = 0;
  std::size_t loads_ = 0;
};

}  // namespace

Node load_merged(std::string_view text, const std::string& path, const Limits& limits, Sources& sources,
                 Reporter& reporter) {
  return Loader(limits, sources, reporter).load_plan_text(text, path);
}

}  // namespace numcheck::plan
