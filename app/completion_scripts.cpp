#include "completion_scripts.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "core/strings.hpp"

namespace numcheck::app {
namespace {

CompletedOption completed(const CLI::Option& option) {
  CompletedOption result;
  for (const std::string& name : option.get_snames()) {
    result.names.push_back("-" + name);
  }
  for (const std::string& name : option.get_lnames()) {
    result.names.push_back("--" + name);
  }
  result.description = option.get_description();
  result.takes_value = option.get_type_size_max() != 0 && option.get_items_expected_max() != 0;
  const std::string type = option.get_type_name();
  result.takes_path = type == "PATH" || type == "DIR";
  const bool is_list =
      type.find('|') != std::string::npos && type.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos;
  if (result.takes_value && is_list) {
    result.choices = core::split(type, '|');
  }
  return result;
}

std::vector<CompletedOption> options_of(const CLI::App& cli) {
  std::vector<CompletedOption> options;
  for (const CLI::Option* option : cli.get_options()) {
    if (option->nonpositional() && !option->get_group().empty()) {
      options.push_back(completed(*option));
    }
  }
  return options;
}

/// For use inside a shell's single quotes.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    result += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  }
  return result;
}

std::string all_names(const std::vector<CompletedOption>& options) {
  std::vector<std::string> names;
  for (const CompletedOption& option : options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return fmt::format("{}", fmt::join(names, " "));
}

/// For the description in a zsh _arguments specification, where brackets and colons have a meaning.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char letter : escaped(text)) {
    if (letter == '[' || letter == ']' || letter == ':') {
      result += '\\';
    }
    result += letter;
  }
  return result;
}

std::string bash_values(const CompletedCommand& command) {
  std::string text;
  for (const CompletedOption& option : command.options) {
    if (!option.takes_value) {
      continue;
    }
    const std::string action = !option.choices.empty() ? fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))",
                                                                     fmt::join(option.choices, " "))
                               : option.takes_path     ? "COMPREPLY=($(compgen -f -- \"$word\"))"
                                                       : "COMPREPLY=()";
    text += fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"), action);
  }
  return text;
}

}  // namespace

std::vector<CompletedCommand> completed_commands(const CLI::App& cli) {
  std::vector<CompletedCommand> commands = {{"", "", options_of(cli), {}}};
  const std::vector<std::unique_ptr<Command>> known = commands::make_all();
  for (const std::unique_ptr<Command>& command : known) {
    const CommandInfo& info = command->info();
    commands.push_back({std::string(info.name),
                        std::string(info.summary),
                        options_of(*cli.get_subcommand(std::string(info.name))),
                        {info.words.begin(), info.words.end()}});
  }
  return commands;
}

std::string bash_completion(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> names;
  std::string branches;
  for (const CompletedCommand& command : commands) {
    if (command.name.empty()) {
      continue;
    }
    names.push_back(command.name);
    branches += fmt::format(
        "    {})\n      case \"$previous\" in\n{}      esac\n"
        "      if [[ $word == -* ]]; then\n        COMPREPLY=($(compgen -W '{}' -- \"$word\"))\n"
        "      else\n        COMPREPLY=($(compgen -f -W '{}' -- \"$word\"))\n      fi\n      ;;\n",
        command.name, bash_values(command), all_names(command.options), fmt::join(command.words, " "));
  }
  return fmt::format(
      "# bash completion for te-numcheck\n_te_numcheck() {{\n"
      "  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    case \"${{COMP_WORDS[i]}}\" in\n      {}) command=${{COMP_WORDS[i]}}; break ;;\n    esac\n  done\n"
      "  case \"$command\" in\n{}    *) COMPREPLY=($(compgen -W '{} {}' -- \"$word\")) ;;\n  esac\n}}\n"
      "complete -o filenames -F _te_numcheck te-numcheck\n",
      fmt::join(names, "|"), branches, fmt::join(names, " "), all_names(commands.front().options));
}

std::string zsh_completion(const std::vector<CompletedCommand>& commands) {
  std::string list;
  std::string branches;
  for (const CompletedCommand& command : commands) {
    if (command.name.empty()) {
      continue;
    }
    list += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
    branches += fmt::format("    {})\n      _arguments \\\n", command.name);
    for (const CompletedOption& option : command.options) {
      const std::string value = !option.takes_value       ? ""
                                : !option.choices.empty() ? fmt::format(":value:({})", fmt::join(option.choices, " "))
                                : option.takes_path       ? ":path:_files"
                                                          : ":value:";
      for (const std::string& name : option.names) {
        branches += fmt::format("        '{}[{}]{}' \\\n", name, zsh_text(option.description), value);
      }
    }
    branches += command.words.empty()
                    ? "        '*:plan:_files'\n      ;;\n"
                    : fmt::format("        '1:what:({})' '*:plan:_files'\n      ;;\n", fmt::join(command.words, " "));
  }
  return fmt::format(
      "#compdef te-numcheck\n_te_numcheck() {{\n  local -a commands\n  commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n{}  esac\n}}\n"
      "_te_numcheck \"$@\"\n",
      list, branches);
}

std::string fish_completion(const std::vector<CompletedCommand>& commands) {
  std::string text = "# fish completion for te-numcheck\n";
  for (const CompletedCommand& command : commands) {
    const std::string condition =
        command.name.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + command.name;
    if (!command.name.empty()) {
      text += fmt::format("complete -c te-numcheck -f -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                          escaped(command.summary));
    }
    for (const CompletedOption& option : command.options) {
      text += fmt::format("complete -c te-numcheck -n '{}'", condition);
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_value) {
        text += option.takes_path ? " -r -F" : " -x";
      }
      if (!option.choices.empty()) {
        text += fmt::format(" -a '{}'", fmt::join(option.choices, " "));
      }
      text += fmt::format(" -d '{}'\n", escaped(option.description));
    }
    if (!command.words.empty()) {
      text += fmt::format("complete -c te-numcheck -n '{}' -a '{}'\n", condition, fmt::join(command.words, " "));
    }
  }
  return text;
}

}  // namespace numcheck::app
