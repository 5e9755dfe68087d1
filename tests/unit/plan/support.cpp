#include "support.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "op/gemm.hpp"

namespace numcheck::plan::testing {
namespace {

std::string render_all(const std::vector<Diagnostic>& diagnostics) {
  std::string all;
  for (const Diagnostic& diagnostic : diagnostics) {
    all += render(diagnostic);
  }
  return all;
}

}  // namespace

const op::Op* lookup(std::string_view name) {
  return name == "gemm" ? &op::gemm() : nullptr;
}

const Vocabulary& vocabulary() {
  static const Vocabulary words{{&op::gemm()}, {"cublaslt", "cuda", "sim"}, &lookup};
  return words;
}

Plan load(std::string_view text, const Limits& limits) {
  return parse_plan(text, "plan.json", vocabulary(), limits);
}

std::string with_case(std::string_view keys) {
  return fmt::format(
      R"({{"version": 1, "defaults": {{"op": "gemm", "params": {{"m": 1, "n": 1, "k": 1}}, "mode": "bf16"}}, "cases": [{{
{}
}}]}})",
      keys);
}

std::string diagnose(std::string_view text, const Limits& limits) {
  try {
    return render_all(load(text, limits).warnings);
  } catch (const PlanError& error) {
    return render_all(error.diagnostics());
  }
}

std::vector<std::string> ids(const Plan& plan) {
  std::vector<std::string> all;
  for (const Case& c : plan.cases) {
    all.push_back(c.id);
  }
  return all;
}

std::string Folder::path(const std::string& name) const {
  return (root_.path() / name).string();
}

std::string Folder::write(const std::string& name, std::string_view text) const {
  return root_.write(name, text);
}

std::string Folder::diagnose_file(const std::string& name, const Limits& limits) const {
  std::string text;
  try {
    text = render_all(load_plan(path(name), vocabulary(), limits).warnings);
  } catch (const PlanError& error) {
    text = render_all(error.diagnostics());
  }
  const std::string prefix = root_.path().string() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  return text;
}

std::string read_repository_file(const std::string& name) {
  std::ifstream stream(std::string(TE_NUMCHECK_SOURCE_DIR) + "/" + name, std::ios::binary);
  if (!stream) {
    throw std::runtime_error("cannot read " + name);
  }
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace numcheck::plan::testing
