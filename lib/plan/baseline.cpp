#include "plan/baseline.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "core/file.hpp"

namespace numcheck::plan {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPath = 4096;

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
  const fs::path path = (fs::path(reporter.place_of(node).file).parent_path() / node.text).lexically_normal();
  if (limits.sandbox && !core::is_inside(fs::path(plan_path).parent_path(), path)) {
    reporter.error(node, fmt::format("{} is outside the plan's folder", quote(node.text)),
                   {"--sandbox allows only files in or below the plan's folder", {}});
    return std::nullopt;
  }
  return BaselineFile{path.string(), reporter.diagnostic_at(node)};
}

}  // namespace numcheck::plan
