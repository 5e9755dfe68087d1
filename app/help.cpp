#include "help.hpp"

#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "words.hpp"

namespace numcheck::app {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kColumn = 28;  // where descriptions start

/// "-k, --filter REGEX" or "    --json PATH".
std::string option_words(const CLI::Option& option) {
  std::string words = option.get_snames().empty() ? "    " : "-" + option.get_snames().front() + ", ";
  if (option.get_lnames().empty()) {
    words = "-" + option.get_snames().front();
  } else {
    words += "--" + option.get_lnames().front();
  }
  const std::string type = option.get_type_name();
  if (has_optional_count(option)) {
    words += "[=" + type + "]";
  } else if (!type.empty()) {
    words += " " + type;
  }
  return words;
}

std::string description_of(const CLI::Option& option) {
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) {
    text += fmt::format(" [{}]", option.get_default_str());
  }
  if (!option.get_envname().empty()) {
    text += fmt::format(" (env {})", option.get_envname());
  }
  return text;
}

/// Fills lines up to kWidth, continuing at kColumn.
std::string wrapped(const std::string& head, const std::string& text) {
  std::string result = head;
  std::size_t column = head.size();
  if (column + 2 > kColumn) {
    result += "\n" + std::string(kColumn, ' ');
  } else {
    result += std::string(kColumn - column, ' ');
  }
  column = kColumn;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t length = end - at;
    if (column > kColumn && column + 1 + length > kWidth) {
      result += "\n" + std::string(kColumn, ' ');
      column = kColumn;
    } else if (column > kColumn) {
      result += " ";
      ++column;
    }
    result += text.substr(at, length);
    column += length;
    at = end + 1;
  }
  return result + "\n";
}

std::string option_lines(const CLI::App& cli) {
  std::string text;
  for (const OptionGroup& group : option_groups(cli)) {
    text += "\n" + group.title + ":\n";
    for (const OptionText& option : group.options) {
      text += wrapped("  " + option.words, option.description);
    }
  }
  return text;
}

}  // namespace

std::vector<OptionGroup> option_groups(const CLI::App& cli) {
  std::vector<OptionGroup> groups;
  for (const CLI::Option* option : cli.get_options()) {
    if (!option->nonpositional() || option->get_group().empty()) {
      continue;
    }
    auto group = std::ranges::find(groups, option->get_group(), &OptionGroup::title);
    if (group == groups.end()) {
      group = groups.insert(groups.end(), OptionGroup{option->get_group(), {}});
    }
    group->options.push_back({option_words(*option), description_of(*option)});
  }
  return groups;
}

std::string_view exit_code_words(int code) noexcept {
  switch (code) {
    case 0:
      return "everything that ran passed, and something ran";
    case 1:
      return "a case failed: numerics differ, or a known failure passed";
    case 2:
      return "usage or plan error; nothing was run";
    case 3:
      return "a case ended in error, crash or timeout, or the environment is unusable";
    case 4:
      return "nothing was verified: no case was selected, or none could run";
    case 130:
      return "interrupted (143: terminated, 129: terminal closed); a partial report was written";
    default:
      return "";
  }
}

std::string_view exit_code_text(const CommandInfo& info, int code) noexcept {
  const bool runs_cases = std::ranges::find(info.exit_codes, 1) != info.exit_codes.end();
  return code == 0 && !runs_cases ? "done" : exit_code_words(code);
}

std::string command_help(const CLI::App& cli, const CommandInfo& info) {
  std::string text = fmt::format("te-numcheck {}: {}\n\nusage: te-numcheck {} {}\n\nexamples:\n", info.name,
                                 info.summary, info.name, info.usage);
  for (const std::string_view example : info.examples) {
    text += fmt::format("  te-numcheck {}\n", example);
  }
  text += option_lines(cli);
  text += "\nexit codes:\n";
  for (const int code : info.exit_codes) {
    text += fmt::format("  {:>3}  {}\n", code, exit_code_text(info, code));
  }
  return text;
}

std::string program_help(const CLI::App& cli, const std::vector<std::unique_ptr<Command>>& commands) {
  std::string text = "te-numcheck: " + std::string(kProgramSummary) +
                     "\n\n"
                     "usage: te-numcheck COMMAND [OPTIONS] [PLAN...]\n\n"
                     "examples:\n"
                     "  te-numcheck run configs/plans/quick.json\n"
                     "  te-numcheck doctor\n\n"
                     "commands:\n";
  for (const std::unique_ptr<Command>& command : commands) {
    text += wrapped("  " + std::string(command->info().name), std::string(command->info().summary));
  }
  text += option_lines(cli);
  return text + "\nte-numcheck COMMAND --help explains a command. No command uses the network.\n";
}

}  // namespace numcheck::app
