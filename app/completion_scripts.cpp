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
  result.takes_value = option.get_items_expected_max() != 0;
  const std::string type = option.get_type_name();
  result.takes_path = type == "PATH" || type == "DIR";
  result.values = offered_values(result.names.back());
  const bool is_list =
      type.find('|') != std::string::npos && type.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos;
  if (result.takes_value && is_list) {
    result.values.fixed = core::split(type, '|');
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

}  // namespace

std::vector<CompletedCommand> completed_commands(const CLI::App& cli) {
  std::vector<CompletedCommand> commands = {{"", "", options_of(cli), {}, false}};
  const std::vector<std::unique_ptr<Command>> known = commands::make_all();
  for (const std::unique_ptr<Command>& command : known) {
    const CommandInfo& info = command->info();
    const CLI::App& sub = *cli.get_subcommand(std::string(info.name));
    commands.push_back({std::string(info.name),
                        std::string(info.summary),
                        options_of(sub),
                        {info.words.begin(), info.words.end()},
                        sub.get_option_no_throw("plans") != nullptr});
  }
  return commands;
}

std::string in_quotes(std::string_view text) {
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

}  // namespace numcheck::app
