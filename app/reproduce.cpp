#include "reproduce.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"

namespace numcheck::app {
namespace {

/// A path for the record, which contains no absolute paths: relative to the working folder if it is below that,
/// otherwise just the file name.
std::string recorded_path(const std::string& path) {
  if (!path.starts_with('/')) {
    return path;
  }
  std::error_code failure;  // the working folder may be gone
  const std::filesystem::path relative =
      std::filesystem::path(path).lexically_relative(std::filesystem::current_path(failure));
  return relative.empty() || *relative.begin() == ".." ? std::filesystem::path(path).filename().string()
                                                       : relative.string();
}

}  // namespace

std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./:=,+@%") == std::string::npos;
  // zsh replaces a word that begins with = by the path of a command.
  if (plain && !word.starts_with('=')) {
    return word;
  }
  const bool printable = core::is_printable(word);
  std::string text = printable ? "'" : "$'";
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = std::max<std::size_t>(1, core::utf8_length(word, at));
    const std::string_view character = std::string_view(word).substr(at, length);
    if (character == "'") {
      text += printable ? "'\\''" : "\\'";
    } else if (!printable && character == "\\") {
      text += "\\\\";
    } else if (!core::is_printable(character)) {
      for (const char byte : character) {
        text += fmt::format("\\{:03o}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
      }
    } else {
      text += character;
    }
    at += length;
  }
  return text + "'";
}

std::string as_argument(const std::string& path) {
  return path.starts_with('-') ? "./" + path : path;
}

namespace {

template <class PathText>
std::string command_text(const PlanOptions& plans, const ExecutionOptions& execution, const PathText& path_text) {
  std::string text = "te-numcheck run";
  for (const std::string& path : plans.paths) {
    text += " " + shell_word(as_argument(path_text(path)));
  }
  const auto add = [&text](const char* option, const std::string& value, const char* fallback) {
    if (value != fallback) {
      text += std::string(" ") + option + " " + shell_word(value);
    }
  };
  for (const std::string& path : plans.known_issues) {
    add("--known", as_argument(path_text(path)), "");
  }
  add("--device", execution.device, "auto");
  add("--max-cases", plans.max_cases, "");
  add("--repeat", execution.repeat, "");
  add("--timeout", execution.timeout, "");
  add("--memory", execution.memory, "");
  add("--reference-flops", execution.reference_flops, "");
  add("--inject", execution.inject, "");
  for (const std::string& name : execution.inject_cases) {
    add("--inject-case", name, "");
  }
  if (execution.te_libs.size() > 1) {  // then identifiers and digests name versions
    for (const std::string& path : execution.te_libs) {
      add("--te-lib", as_argument(path_text(path)), "");
    }
  }
  return text;
}

}  // namespace

Reproducer reproducer(const PlanOptions& plans, const ExecutionOptions& execution) {
  return {.recorded = command_text(plans, execution, recorded_path),
          .typed = command_text(plans, execution, [](const std::string& path) { return path; })};
}

void reproduce_as_typed(nlohmann::json& report, const Reproducer& command) {
  if (command.recorded == command.typed) {
    return;
  }
  for (nlohmann::json& record : report.at("cases")) {
    if (const auto found = record.find("reproduce"); found != record.end()) {
      const std::string text = found->get<std::string>();
      if (text.starts_with(command.recorded + " --case ")) {
        *found = command.typed + text.substr(command.recorded.size());
      }
    }
  }
}

}  // namespace numcheck::app
