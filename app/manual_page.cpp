#include "manual_page.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "command.hpp"
#include "core/printable.hpp"
#include "help.hpp"
#include "machine/build_info.hpp"
#include "machine/environment.hpp"
#include "variables.hpp"

namespace numcheck::app {
namespace {

constexpr std::string_view kCommonGroup = "Common";

constexpr std::string_view kDescription =
    "te-numcheck runs operations in FP32, TF32, BF16, FP16 and FP8 on a device, computes the same operations from the "
    "same "
    "bits in double precision on the CPU, and judges the difference by how far correct arithmetic of that kind can be "
    "off. "
    "It says which precision really ran and what environment variables changed. It does not use the network.";

constexpr std::string_view kPlanText =
    "PLAN is a file, or the name of a plan that is shipped, such as quick. \"te-numcheck schema plan\" prints the "
    "format.";

struct FileInfo {
  std::string_view path;
  std::string_view doc;
};

constexpr std::array kFiles{
    FileInfo{"../share/te-numcheck/configs/",
             "relative to the program: plans, baselines and known issues that are shipped"},
    FileInfo{"te-numcheck-TIME/report.json", "what a run leaves, unless --no-save, --out or --json say otherwise"},
    FileInfo{"te-numcheck-TIME/results.jsonl", "the results so far, from which --resume continues"},
};

std::string paragraph(std::string_view text) {
  return fmt::format(".PP\n{}\n", troff_text(text));
}

/// A tagged paragraph: what in bold, then the text, indented.
std::string item(std::string_view what, std::string_view text) {
  return fmt::format(".TP\n\\fB{}\\fR\n{}\n", troff_text(what), troff_text(text));
}

std::string literal(const std::vector<std::string>& lines) {
  std::string text = ".PP\n.RS 4\n.nf\n";
  for (const std::string& line : lines) {
    text += troff_text(line) + "\n";
  }
  return text + ".fi\n.RE\n";
}

std::string without_indent(const std::string& words) {
  return words.substr(std::min(words.find_first_not_of(' '), words.size()));
}

std::string option_items(const OptionGroup& group) {
  std::string text;
  for (const OptionText& option : group.options) {
    text += item(without_indent(option.words), option.description);
  }
  return text;
}

std::string command_section(const CLI::App& cli, const CommandInfo& info) {
  std::string text = fmt::format(".SS {}\n{}.\n", troff_text(info.name), troff_text(info.summary));
  text += fmt::format(".PP\n\\fBte\\-numcheck {}\\fR {}\n", troff_text(info.name), troff_text(info.usage));
  for (const OptionGroup& group : option_groups(cli)) {
    if (group.title != kCommonGroup) {
      text += paragraph(group.title + ":") + option_items(group);
    }
  }
  std::vector<std::string> examples;
  for (const std::string_view example : info.examples) {
    examples.push_back(fmt::format("te-numcheck {}", example));
  }
  text += paragraph(examples.size() == 1 ? "Example:" : "Examples:") + literal(examples);
  std::string codes;
  for (const int code : info.exit_codes) {
    codes += fmt::format("{}{}", codes.empty() ? "" : ", ", code);
  }
  return text + paragraph("Exit codes: " + codes + ".");
}

std::string exit_status(const std::vector<std::unique_ptr<Command>>& commands) {
  std::set<int> codes;
  for (const std::unique_ptr<Command>& command : commands) {
    codes.insert(command->info().exit_codes.begin(), command->info().exit_codes.end());
  }
  std::string text = ".SH EXIT STATUS\n";
  for (const int code : codes) {
    text += item(std::to_string(code), std::string(exit_code_words(code)) + ".");
  }
  return text +
         paragraph("1 takes precedence over 3. For commands that run no cases, 0 means that they did what they say.");
}

std::string environment() {
  std::string text = ".SH ENVIRONMENT\n";
  for (const VariableInfo& variable : variables()) {
    text += item(variable.names, std::string(variable.doc) + ".");
  }
  text += ".SS Variables that change numbers\n" +
          troff_text("Reports record these, also if unset, and plans may set most of them for a case.") + "\n";
  for (const machine::NumericVariable& variable : machine::numeric_variables()) {
    text += item(variable.name, std::string(variable.doc) + ".");
  }
  return text;
}

}  // namespace

std::string troff_text(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(core::utf8_length(text, at), 1);
    const std::string_view letter = text.substr(at, length);
    at += length;
    if (length > 1) {
      result += fmt::format("\\[u{:04X}]", core::code_point(letter));
      continue;
    }
    switch (letter.front()) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      case '"':
        result += "\\(dq";
        break;
      case '.':
        result += result.empty() ? "\\&." : ".";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

std::string manual_page(const CLI::App& cli) {
  const machine::BuildInfo& build = machine::build_info();
  const std::vector<std::unique_ptr<Command>> commands = commands::make_all();
  std::string text = fmt::format(".TH TE\\-NUMCHECK 1 \"{}\" \"te\\-numcheck {}\" \"User Commands\"\n", build.date,
                                 troff_text(build.version));
  text += ".nh\n";  // names of variables are not words
  text += fmt::format(".SH NAME\nte\\-numcheck \\- {}\n", troff_text(kProgramSummary));
  text += ".SH SYNOPSIS\n\\fBte\\-numcheck\\fR \\fICOMMAND\\fR [OPTIONS] [PLAN...]\n";
  text += ".SH DESCRIPTION\n" + troff_text(kDescription) + "\n" + paragraph(kPlanText);
  text += ".SH COMMANDS\n";
  for (const std::unique_ptr<Command>& command : commands) {
    text += command_section(*cli.get_subcommand(std::string(command->info().name)), command->info());
  }
  text += ".SH COMMON OPTIONS\n";
  for (const OptionGroup& group : option_groups(cli)) {
    text += option_items(group);
  }
  text += exit_status(commands) + environment() + ".SH FILES\n";
  for (const FileInfo& file : kFiles) {
    text += item(file.path, std::string(file.doc) + ".");
  }
  return text;
}

}  // namespace numcheck::app
