#include "plan/baseline.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

namespace numcheck::plan {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPath = 4096;

fs::path folder_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

bool is_inside(const fs::path& folder, const fs::path& file) {
  std::error_code ignored;
  const fs::path outer = fs::weakly_canonical(folder, ignored), inner = fs::weakly_canonical(file, ignored);
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

}  // namespace

std::optional<BaselineFile> decode_baseline(const Node& node, const std::string& plan_path, const Limits& limits,
                                            Reporter& reporter) {
  if (!node.is(Node::Kind::text)) {
    wrong_kind(node, "\"baseline\"", "the name of a report", reporter, R"("baseline": "baselines/h200.json")");
    return std::nullopt;
  }
  if (node.text.empty() || node.text.size() > kMaxPath || node.text.find('\0') != std::string::npos) {
    reporter.error(node, "\"baseline\" must be the name of a file");
    return std::nullopt;
  }
  const fs::path path = (folder_of(reporter.place_of(node).file) / node.text).lexically_normal();
  if (limits.sandbox && !is_inside(folder_of(plan_path), path)) {
    reporter.error(node, fmt::format("{} is outside the plan's folder", quote(node.text)),
                   {"--sandbox allows only files in or below the plan's folder", {}});
    return std::nullopt;
  }
  return BaselineFile{path.string(), reporter.diagnostic_at(node)};
}

}  // namespace numcheck::plan
