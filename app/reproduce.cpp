#include "reproduce.hpp"

#include <filesystem>

namespace numcheck::app {
namespace {

/// A word as a shell reads it back.
std::string quoted(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./:=,+@%") == std::string::npos;
  if (plain) {
    return word;
  }
  std::string text = "'";
  for (const char letter : word) {
    text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return text + "'";
}

/// A path for the record, which names no folder by an absolute path: relative to the working folder where it is below
/// it, else the file name.
std::string recorded_path(const std::string& path) {
  if (!path.starts_with('/')) {
    return path;
  }
  const std::filesystem::path relative =
      std::filesystem::path(path).lexically_relative(std::filesystem::current_path());
  return relative.empty() || *relative.begin() == ".." ? std::filesystem::path(path).filename().string()
                                                       : relative.string();
}

}  // namespace

std::string reproduce_prefix(const PlanOptions& plans, const ExecutionOptions& execution) {
  std::string text = "te-numcheck run";
  for (const std::string& path : plans.paths) {
    text += " " + quoted(recorded_path(path));
  }
  const auto add = [&text](const char* option, const std::string& value, const char* fallback) {
    if (value != fallback) {
      text += std::string(" ") + option + " " + quoted(value);
    }
  };
  add("--device", execution.device, "auto");
  add("--repeat", execution.repeat, "");
  add("--inject", execution.inject, "");
  for (const std::string& name : execution.inject_cases) {
    add("--inject-case", name, "");
  }
  if (execution.te_libs.size() > 1) {  // identifiers and digests name versions then
    for (const std::string& path : execution.te_libs) {
      add("--te-lib", recorded_path(path), "");
    }
  }
  return text;
}

}  // namespace numcheck::app
