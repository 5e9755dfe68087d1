#include "command_line.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/strings.hpp"
#include "help.hpp"
#include "plans.hpp"
#include "reproduce.hpp"
#include "words.hpp"

namespace numcheck::app {
namespace {

void add_common(CLI::App& cli, CommonOptions& common) {
  const char* group = "Common";
  cli.add_flag("-h,--help", common.help, "print this help")->group(group);
  cli.add_flag("--version", common.version, "print the version, the source revision and the CUDA toolkit built against")
      ->group(group);
  cli.add_flag("-q,--quiet", common.quiet, "print only the summary line")->group(group);
  // A function instead of a counter: newer CLI11 would show the counter's 0 as a default, and not count without one.
  cli.add_flag_function(
         "-v,--verbose", [&common](std::int64_t count) { common.verbose = static_cast<int>(count); },
         "print every case; twice: also metrics and stage times")
      ->group(group);
  // Not CLI11's envname: that also reads the variable for commands that were not chosen, and all of them share the
  // value, so the variable would override the command line.
  cli.add_option("--color", common.colour,
                 "colour: auto follows NO_COLOR, CLICOLOR_FORCE, TERM and whether stdout is a terminal (env "
                 "TE_NUMCHECK_COLOR)")
      ->type_name("auto|always|never")
      ->group(group);
  cli.add_option("--progress", common.progress,
                 "status on stderr: auto redraws it on a terminal and otherwise prints a line every 30 s")
      ->type_name("auto|plain|never")
      ->group(group);
}

/// Long option names ("--color") and command names that are legal here.
std::vector<std::string> legal_words(const CLI::App& cli) {
  std::vector<std::string> words;
  for (const CLI::Option* option : cli.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.push_back("--" + name);
    }
  }
  for (const CLI::App* command : cli.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(command->get_name());
  }
  return words;
}

/// What to do instead, if the word is that of a plan: its name or its file stands where the command belongs.
std::string plan_hint(const std::string& word) {
  return names_plan(word) ? fmt::format("; to run this plan: te-numcheck run {}", shell_word(word)) : "";
}

/// Words that nothing took. CLI11 also leaves the "--" after which words are no options.
std::vector<std::string> leftovers(const CLI::App& cli) {
  std::vector<std::string> words = cli.remaining();
  std::erase(words, "--");
  return words;
}

[[noreturn]] void reject_word(const CLI::App& cli, const std::string& argument, std::string_view kind) {
  const std::string word = argument.substr(0, argument.find('='));
  const std::vector<std::string> words = legal_words(cli);
  const bool is_option = word.starts_with("-");
  std::vector<std::string_view> candidates;
  for (const std::string& legal : words) {
    if (legal.starts_with("-") == is_option) {
      candidates.push_back(legal);
    }
  }
  const std::string_view nearest = core::nearest_name(word, candidates);
  throw core::UsageError(fmt::format("unknown {} {}{}{}", kind, word,
                                     nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                                     is_option || nearest == word ? "" : plan_hint(argument)));
}

std::vector<const CLI::App*> with_commands(const CLI::App& cli) {
  std::vector<const CLI::App*> all = {&cli};
  for (const CLI::App* command : cli.get_subcommands([](const CLI::App*) { return true; })) {
    all.push_back(command);
  }
  return all;
}

/// A value is missing, or there is one too many. CLI11's wording differs between its versions, but always contains the
/// name of the option.
std::string mismatch_text(const CLI::App& cli, const std::string& text) {
  const std::string name = text.substr(0, text.find_first_of(": "));
  for (const CLI::App* app : with_commands(cli)) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_name() == name && option->results().size() > 1) {
        return fmt::format("option {} is given {} times; it takes one value", name, option->results().size());
      }
    }
  }
  return fmt::format("option {} needs a value", name);
}

/// An empty value comes from a script's unset variable and is never intended: --out "$OUT" must not mean "no --out".
void reject_empty_values(const CLI::App& cli) {
  for (const CLI::App* app : with_commands(cli)) {
    for (const CLI::Option* option : app->get_options()) {
      const std::vector<std::string>& values = option->results();
      if (option->count() == 0 || std::ranges::find(values, "") == values.end()) {
        continue;
      }
      if (option->nonpositional()) {
        throw core::UsageError(fmt::format("option {} needs a value, not an empty one", option->get_name()));
      }
      throw core::UsageError(fmt::format("{}: an argument is empty", app->get_name()));
    }
  }
}

}  // namespace

CommandLine::CommandLine() : commands_(commands::make_all()), cli_(std::make_unique<CLI::App>()) {
  cli_->name("te-numcheck");
  cli_->set_help_flag("");
  cli_->allow_extras();
  cli_->require_subcommand(0, 1);
  add_common(*cli_, common_);
  for (const std::unique_ptr<Command>& command : commands_) {
    CLI::App* sub = cli_->add_subcommand(std::string(command->info().name), std::string(command->info().summary));
    sub->set_help_flag("");
    sub->allow_extras();
    command->add_options(*sub);
    add_common(*sub, common_);
  }
}

CommandLine::~CommandLine() = default;

void CommandLine::parse(const std::vector<std::string>& argv) {
  const std::vector<std::string> words = understood_words(argv, *cli_);
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    cli_->parse(reversed);
  } catch (const CLI::ArgumentMismatch& mistake) {
    throw core::UsageError(mismatch_text(*cli_, mistake.what()));
  } catch (const CLI::ParseError& mistake) {
    throw core::UsageError(mistake.what());
  }
  for (const std::unique_ptr<Command>& command : commands_) {
    if (cli_->got_subcommand(std::string(command->info().name))) {
      command_ = command.get();
    }
  }
  if (common_.colour.empty()) {
    const char* variable = std::getenv("TE_NUMCHECK_COLOR");
    common_.colour = variable != nullptr && *variable != '\0' ? variable : "auto";
  }
  if (!common_.help && !common_.version) {
    reject_leftovers();
    reject_empty_values(*cli_);
  } else if (command_ == nullptr) {
    reject_unknown_command();  // its help would be the program's, as if all were well
  }
}

void CommandLine::reject_unknown_command() const {
  for (const std::string& word : leftovers(*cli_)) {
    if (!word.starts_with("-")) {
      reject_word(*cli_, word, "command");
    }
  }
}

void CommandLine::reject_leftovers() const {
  if (command_ == nullptr) {
    for (const std::string& word : leftovers(*cli_)) {
      reject_word(*cli_, word, word.starts_with("-") ? "option" : "command");
    }
    return;
  }
  for (const std::string& word : leftovers(*cli_)) {
    reject_word(*cli_, word, "option");
  }
  const CLI::App* sub = cli_->get_subcommand(std::string(command_->info().name));
  const std::vector<std::string> left = leftovers(*sub);
  const auto option = std::ranges::find_if(left, [](const std::string& word) { return word.starts_with("-"); });
  if (option != left.end()) {
    reject_word(*sub, *option, "option");
  }
  if (!left.empty()) {
    throw core::UsageError(fmt::format("{}: unexpected argument \"{}\"", command_->info().name, left.front()));
  }
}

std::string CommandLine::help() const {
  if (command_ == nullptr) {
    return program_help(*cli_, commands_);
  }
  return command_help(*cli_->get_subcommand(std::string(command_->info().name)), command_->info());
}

}  // namespace numcheck::app
