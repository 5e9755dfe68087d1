#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "completion_scripts.hpp"

namespace numcheck::app {
namespace {

constexpr std::string_view kHead = R"(# fish completion for te-numcheck
function __te_numcheck_ask
    set -l words (commandline -opc)
    command $words[1] completion --values $argv[1] -- $words[2..-1] 2>/dev/null
end
function __te_numcheck_list
    set -l typed (commandline -ct | string replace -r '^--[^=]*=' '')
    set -l prefix (string match -r '^.*,' -- $typed)
    for value in $argv
        echo "$prefix$value"
    end
end
function __te_numcheck_first
    test (count (commandline -opc)) -eq 2
end
)";

std::string value_of(const CompletedOption& option) {
  const OfferedValues& values = option.values;
  if (!option.takes_value) {
    return "";
  }
  if (!values.fixed.empty() || !values.asked.empty()) {
    const std::string offered = values.asked.empty() ? fmt::format("{}", fmt::join(values.fixed, " "))
                                                     : fmt::format("(__te_numcheck_ask {})", values.asked);
    return fmt::format(" -x -a '{}'", values.is_list ? "(__te_numcheck_list " + offered + ")" : offered);
  }
  return option.takes_path ? " -r -F" : " -x";
}

}  // namespace

std::string fish_completion(const std::vector<CompletedCommand>& commands) {
  std::string text(kHead);
  for (const CompletedCommand& command : commands) {
    const std::string condition =
        command.name.empty() ? "__fish_use_subcommand" : "__fish_seen_subcommand_from " + command.name;
    if (!command.name.empty()) {
      text += fmt::format("complete -c te-numcheck -f -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                          in_quotes(command.summary));
    }
    for (const CompletedOption& option : command.options) {
      text += fmt::format("complete -c te-numcheck -n '{}'", condition);
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      text += value_of(option) + fmt::format(" -d '{}'\n", in_quotes(option.description));
    }
    if (!command.words.empty()) {
      text += fmt::format("complete -c te-numcheck {}-n '{}; and __te_numcheck_first' -a '{}'\n",
                          command.takes_plans ? "" : "-f ", condition, fmt::join(command.words, " "));
    }
    if (command.takes_plans) {
      text += fmt::format("complete -c te-numcheck -n '{}' -a '(__te_numcheck_ask plan)'\n", condition);
    }
  }
  return text;
}

}  // namespace numcheck::app
