#include "words.hpp"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::app {
namespace {

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() != 0;
}

const CLI::Option* find_short(const CLI::App& cli, char letter) {
  return cli.get_option_no_throw(std::string("-") + letter);
}

bool is_count(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

[[noreturn]] void refuse_value(const CLI::Option& option, std::string_view value) {
  if (value.empty()) {
    throw core::UsageError(fmt::format("option {} needs a value, not an empty one", option.get_name()));
  }
  const bool repeats = option.get_name() == "--verbose";
  throw core::UsageError(fmt::format("option {} takes no value, but is given \"{}\"{}", option.get_name(), value,
                                     repeats ? "; for more, repeat it: -vv" : ""));
}

/// Reads the words one after another; `cli` becomes that of the command once its name was seen.
class Reader {
 public:
  Reader(const std::vector<std::string>& argv, const CLI::App& cli) : argv_(argv), cli_(&cli) {}

  std::vector<std::string> read() {
    while (at_ < argv_.size() && argv_[at_] != "--") {
      const std::string& word = argv_[at_++];
      if (word.starts_with("--")) {
        read_long(word);
      } else if (word.size() > 1 && word.starts_with('-')) {
        read_short(word);
      } else {
        read_plain(word);
      }
    }
    for (; at_ < argv_.size(); ++at_) {
      result_.push_back(one_word(argv_[at_]));
    }
    return std::move(result_);
  }

 private:
  void read_plain(const std::string& word) {
    if (cli_->get_parent() == nullptr) {
      const std::vector<const CLI::App*> commands = cli_->get_subcommands([](const CLI::App*) { return true; });
      const auto command = std::ranges::find(commands, word, &CLI::App::get_name);
      cli_ = command == commands.end() ? cli_ : *command;
    }
    result_.push_back(one_word(word));
  }

  /// CLI11 would take a file "[a,b]" for two, and "++" for the end of the command.
  static std::string one_word(const std::string& word) {
    return word.starts_with('[') || word == "++" ? "./" + word : word;
  }

  void read_long(const std::string& word) {
    const std::size_t equals = word.find('=');
    const CLI::Option* option = cli_->get_option_no_throw(word.substr(0, equals));
    if (option == nullptr) {
      result_.push_back(word);
    } else if (equals != std::string::npos) {
      const std::string value = word.substr(equals + 1);
      if (value.empty() || !(takes_value(*option) || has_optional_count(*option))) {
        refuse_value(*option, value);
      }
      result_.push_back(word);
    } else {
      read_flag_or_value(word, *option);
    }
  }

  /// The word without a value, and the next one if it is the value.
  void read_flag_or_value(const std::string& word, const CLI::Option& option) {
    if (takes_value(option)) {
      result_.push_back(word);
      if (at_ < argv_.size()) {
        result_.push_back(argv_[at_++]);
      }
    } else if (has_optional_count(option) && at_ < argv_.size() && is_count(argv_[at_])) {
      result_.push_back(option.get_name() + "=" + argv_[at_++]);
    } else {
      result_.push_back(word);
    }
  }

  /// A group of letters: flags, and after the last of them perhaps a value.
  void read_short(const std::string& word) {
    for (std::size_t i = 1; i < word.size(); ++i) {
      const CLI::Option* option = find_short(*cli_, word[i]);
      if (option == nullptr) {
        result_.push_back("-" + word.substr(i));
        return;
      }
      const std::string letter = std::string("-") + word[i];
      const std::string rest = word.substr(i + 1);
      if (rest.empty()) {
        read_flag_or_value(letter, *option);
        return;
      }
      const bool assigned = rest.starts_with('=');
      const std::string value = assigned ? rest.substr(1) : rest;
      if (takes_value(*option) || (has_optional_count(*option) && (assigned || is_count(value)))) {
        if (value.empty()) {
          refuse_value(*option, value);
        }
        result_.push_back(option->get_name() + "=" + value);
        return;
      }
      if (assigned) {
        refuse_value(*option, value);
      }
      result_.push_back(letter);
    }
  }

  const std::vector<std::string>& argv_;
  const CLI::App* cli_;
  std::size_t at_ = 0;
  std::vector<std::string> result_;
};

}  // namespace

bool has_optional_count(const CLI::Option& option) {
  return !takes_value(option) && !option.get_type_name().empty();
}

std::vector<std::string> understood_words(const std::vector<std::string>& argv, const CLI::App& cli) {
  if (!argv.empty() && argv.front() == "help") {
    std::vector<std::string> asked(argv.begin() + 1, argv.end());
    asked.emplace_back("--help");
    return Reader(asked, cli).read();
  }
  return Reader(argv, cli).read();
}

}  // namespace numcheck::app
