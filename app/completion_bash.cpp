#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "completion_scripts.hpp"

namespace numcheck::app {
namespace {

/// bash splits the line at "=" and ":" as well (COMP_WORDBREAKS) and replaces only the last piece, so the script joins
/// pieces that no blank separates, and takes from each value what stands before the last piece.
constexpr std::string_view kHead = R"(# bash completion for te-numcheck
_te_numcheck_words() {
  local rest=$COMP_LINE trimmed piece i
  words=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    trimmed=${rest#"${rest%%[![:space:]]*}"}
    if ((i > 0 && ${#trimmed} == ${#rest} && ${#piece} > 0)); then
      words[${#words[@]}-1]+=$piece
    else
      words+=("$piece")
    fi
    rest=${trimmed#"$piece"}
  done
}
_te_numcheck_offer() {
  local choice prefix=
  [[ $list && $value == *,* ]] && prefix=${value%,*},
  for choice; do
    choice=$prefix$choice
    [[ $choice == "$value"* ]] && COMPREPLY+=("${choice#"$strip"}")
  done
}
_te_numcheck_ask() {
  local -a found
  mapfile -t found < <("${words[0]}" completion --values "$1" -- "${words[@]:1}" 2>/dev/null)
  _te_numcheck_offer "${found[@]}"
}
_te_numcheck_files() {
  local plain=${value#[\"\']}
  local -a found
  plain=${plain//\\/}
  mapfile -t found < <(compgen -f -- "$plain")
  compopt -o filenames 2>/dev/null
  strip=${strip//\\/}
  COMPREPLY+=("${found[@]#"$strip"}")
}
)";

constexpr std::string_view kBody = R"(_te_numcheck() {{
  local words i command= option= value list= strip= piece=${{COMP_WORDS[COMP_CWORD]}}
  _te_numcheck_words
  COMPREPLY=()
  for ((i = 1; i < ${{#words[@]}} - 1; i++)); do
    case "${{words[i]}}" in
      {0}) command=${{words[i]}}; break ;;
    esac
  done
  value=${{words[${{#words[@]}}-1]}}
  case "$value" in
    --*=*) option=${{value%%=*}} value=${{value#*=}} ;;
    *) option=${{words[${{#words[@]}}-2]}} ;;
  esac
  [[ $piece == [=:] ]] && piece=
  strip=${{value%"$piece"}}
  case "$command $option" in
{1}  esac
  strip=
  case "$command" in
{2}    *) _te_numcheck_offer {3} {4} ;;
  esac
}}
complete -o bashdefault -o default -F _te_numcheck te-numcheck
)";

/// What completes the value of an option.
std::string action_of(const CompletedOption& option) {
  const std::string list = option.values.is_list ? "list=1; " : "";
  if (!option.values.fixed.empty()) {
    return fmt::format("{}_te_numcheck_offer {}; return", list, fmt::join(option.values.fixed, " "));
  }
  if (!option.values.asked.empty()) {
    return fmt::format("{}_te_numcheck_ask {}; return", list, option.values.asked);
  }
  return option.takes_path ? "_te_numcheck_files; return" : "compopt +o default +o bashdefault 2>/dev/null; return";
}

std::string values_of(const CompletedCommand& command) {
  std::string text;
  for (const CompletedOption& option : command.options) {
    if (option.takes_value) {
      std::string patterns;
      for (const std::string& name : option.names) {
        patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : "|", command.name, name);
      }
      text += fmt::format("    {}) {} ;;\n", patterns, action_of(option));
    }
  }
  return text;
}

std::string arguments_of(const CompletedCommand& command) {
  std::string text =
      fmt::format("    {})\n      if [[ $value == -* ]]; then\n        _te_numcheck_offer {}\n      else\n",
                  command.name, all_names(command.options));
  if (!command.words.empty()) {
    text += fmt::format("        if ((i == ${{#words[@]}} - 2)); then _te_numcheck_offer {}; fi\n",
                        fmt::join(command.words, " "));
  }
  if (command.takes_plans) {
    text += "        _te_numcheck_ask plan\n";
  }
  const bool only_words = !command.words.empty() && !command.takes_plans;
  return text + (only_words ? "        :\n" : "        _te_numcheck_files\n") + "      fi\n      ;;\n";
}

}  // namespace

std::string bash_completion(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> names;
  std::string values;
  std::string arguments;
  for (const CompletedCommand& command : commands) {
    values += values_of(command);
    if (!command.name.empty()) {
      names.push_back(command.name);
      arguments += arguments_of(command);
    }
  }
  return std::string(kHead) + fmt::format(kBody, fmt::join(names, "|"), values, arguments, fmt::join(names, " "),
                                          all_names(commands.front().options));
}

}  // namespace numcheck::app
