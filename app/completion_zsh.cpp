#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "completion_scripts.hpp"

namespace numcheck::app {
namespace {

/// For the description in an _arguments specification, where brackets and colons have a meaning.
std::string described(std::string_view text) {
  std::string result;
  for (const char letter : in_quotes(text)) {
    if (letter == '[' || letter == ']' || letter == ':') {
      result += '\\';
    }
    result += letter;
  }
  return result;
}

constexpr std::string_view kHead = R"zsh(#compdef te-numcheck
_te_numcheck_ask() {
  local -a found
  found=(${(f)"$(command ${(Q)te_numcheck_line[1]} completion --values $1 -- ${(Q)te_numcheck_line[2,-1]} 2>/dev/null)"})
  if [[ -n $2 ]]; then _values -s , $1 $found; else compadd -a found; fi
}
_te_numcheck_plans() { _te_numcheck_ask plan; _files }
)zsh";

/// The part of a specification that completes the option's value.
std::string action_of(const CompletedOption& option) {
  const OfferedValues& values = option.values;
  if (!option.takes_value) {
    return "";
  }
  if (!values.fixed.empty()) {
    std::string list;  // in compadd, because _arguments would take a colon for a separator
    for (const std::string& value : values.fixed) {
      list += " " + value;
    }
    return values.is_list ? fmt::format(":value:_values -s , value{}", list)
                          : fmt::format(":value:compadd --{}", described(list));
  }
  if (!values.asked.empty()) {
    // Without the space, _arguments would put options of compadd after the first word.
    return fmt::format(":value: _te_numcheck_ask {}{}", values.asked, values.is_list ? " list" : "");
  }
  return option.takes_path ? ":path:_files" : ":value:";
}

std::string branch_of(const CompletedCommand& command) {
  std::string text = fmt::format("    {})\n      _arguments \\\n", command.name);
  for (const CompletedOption& option : command.options) {
    const std::string action = action_of(option);
    for (const std::string& name : option.names) {
      const char* assign = action.empty() ? "" : name.starts_with("--") ? "=" : "+";
      text += fmt::format("        '*{}{}[{}]{}' \\\n", name, assign, described(option.description), action);
    }
  }
  const std::string_view others = command.takes_plans ? "_te_numcheck_plans" : "_files";
  if (!command.words.empty()) {
    text += fmt::format("        '1:what:{{compadd -- {}{}}}'", fmt::join(command.words, " "),
                        command.takes_plans ? "; _te_numcheck_plans" : "");
    return text + (command.takes_plans ? fmt::format(" '*:plan:{}'\n      ;;\n", others) : "\n      ;;\n");
  }
  return text + fmt::format("        '*:plan:{}'\n      ;;\n", others);
}

}  // namespace

std::string zsh_completion(const std::vector<CompletedCommand>& commands) {
  std::string list;
  std::string branches;
  for (const CompletedCommand& command : commands) {
    if (!command.name.empty()) {
      list += fmt::format("    '{}:{}'\n", command.name, described(command.summary));
      branches += branch_of(command);
    }
  }
  return std::string(kHead) +
         fmt::format(
             "_te_numcheck() {{\n  local -a commands te_numcheck_line\n  te_numcheck_line=($words)\n  commands=(\n{}  "
             ")\n"
             "  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
             "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n{}  esac\n}}\n"
             "if [[ $funcstack[1] == _te-numcheck ]]; then\n  _te_numcheck \"$@\"\nelse\n  compdef _te_numcheck "
             "te-numcheck\nfi\n",
             list, branches);
}

}  // namespace numcheck::app
