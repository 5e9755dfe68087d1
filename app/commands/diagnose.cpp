// te-numcheck diagnose: somebody's tensors, judged, and if they are wrong, why. Needs no device.
#include <algorithm>
#include <optional>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "catalog.hpp"
#include "command.hpp"
#include "commands/commands.hpp"
#include "core/file.hpp"
#include "core/printable.hpp"
#include "data/tensor_file.hpp"
#include "diagnose/apart.hpp"
#include "diagnose/diagnosis_json.hpp"
#include "diagnose/gather.hpp"
#include "diagnose/search.hpp"
#include "diagnose_again.hpp"
#include "diagnosis_html.hpp"
#include "diagnosis_text.hpp"
#include "execution_options.hpp"
#include "fault_simulator.hpp"
#include "given_tensors.hpp"
#include "machine/device.hpp"
#include "output_checks.hpp"
#include "report/views/console_format.hpp"
#include "reproduce.hpp"
#include "rerun.hpp"
#include "screen_text.hpp"

namespace numcheck::app::commands {
namespace {

const CommandInfo& command_info() {
  static const CommandInfo info{
      .name = "diagnose",
      .summary = "judge the inputs and outputs of an op that somebody saved, and say why outputs are wrong",
      .usage = "[OPTIONS] [OP]",
      .examples = {"diagnose gemm --tensors step.safetensors --map a=x,b=weight,d=y --param trans_b=true",
                   "diagnose layernorm_fwd --in x=x.npy --in gamma=g.npy --in beta=b.npy --out y=y.npy",
                   "diagnose --case 3fc18a2e report.json --html why.html"},
      .exit_codes = {0, 1, 2, 3, 4},
      .words = op_names(),
      .takes_files = true,
  };
  return info;
}

class DiagnoseCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return command_info(); }

  void add_options(CLI::App& cli) override {
    add_tensor_options(cli, tensors_);
    cli.add_option(
           "--against", against_,
           "a second file with the same outputs from elsewhere: which of the two is off, and why; inputs that it "
           "lacks are taken from the first one")
        ->type_name("FILE")
        ->group("Tensors");
    cli.add_option("--case", case_,
                   "a case of a report, run again: diagnose --case ID report.json, with the report where the op stands")
        ->type_name("ID|DIGEST");
    cli.add_option("--effort", effort_,
                   "quick: single causes only, for 10 s; normal: for 20 s, then pairs of causes for 5 s, large cases "
                   "less; thorough: 10 "
                   "minutes for each [normal]")
        ->type_name("EFFORT");
    cli.add_option("--json", json_, "write the diagnosis to this file; - writes it, and nothing else, to stdout")
        ->type_name("PATH")
        ->group("Output");
    cli.add_option(
           "--html", html_,
           "write a page with the diagnosis and the map of the errors, before and after the cause is applied; - "
           "writes it, and nothing else, to stdout")
        ->type_name("PATH")
        ->group("Output");
    cli.add_option("--device", device_,
                   "what computed the outputs, as sim:sm_90 [sim:sm_90]; with --case, what runs it [as in the report]")
        ->type_name("DEVICE");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    if (!case_.empty()) {
      return run_again(context);
    }
    const int sm = architecture();
    const GivenTensors given(tensors_);
    std::optional<data::TensorFile> other;
    std::vector<std::string> paths = given.paths();
    if (!against_.empty()) {
      other = data::TensorFile::open(against_);
      paths.push_back(against_);
    }
    check_files(paths);
    if (!html_.empty() && other.has_value()) {
      throw core::UsageError("--html shows one result: leave out --against, or diagnose each by itself");
    }
    const diagnose::GatherRequest request = given.request(sm);
    simulator_ = make_fault_simulator(sm);
    if (other.has_value()) {
      return compare(context, given, request, *other);
    }
    Answer found = diagnosed(request);
    const std::string failing = given.failing_of_run();
    if (found.diagnosis.kind == diagnose::Diagnosis::Kind::correct && !failing.empty()) {
      found.failed = failing;
      found.gathered.notes.push_back(fmt::format(
          "the run that left these tensors failed: {}; what it does outside of them shows with --case", failing));
    }
    return answer(context, found);
  }

 private:
  /// Refuses outputs that would overwrite what is read, or each other.
  void check_files(const std::vector<std::string>& read) const {
    std::vector<RequestedFile> files;
    for (const auto& [option, path] : {std::pair{"--json", &json_}, std::pair{"--html", &html_}}) {
      if (!path->empty()) {
        files.push_back({option, *path});
      }
    }
    check_requested_files(files, read);
  }

  /// The case of a report, whose tensors nobody has kept.
  core::ExitCode run_again(Context& context) {
    if (tensors_.any() || !against_.empty()) {
      throw core::UsageError(
          "--case says which tensors: those of the case, which runs again; leave out the other options");
    }
    if (tensors_.op.empty()) {
      throw core::UsageError("--case needs the report that has the case: diagnose --case ID report.json");
    }
    check_files({tensors_.op});
    ExecutionOptions execution;
    execution.device = device_;
    diagnose::Gathered gathered{.subject = rerun(tensors_.op, case_, execution), .notes = {}};
    simulator_ = make_fault_simulator(gathered.subject.device.sm);
    return answer(context, diagnosed(std::move(gathered)));
  }

  struct Answer {
    diagnose::Gathered gathered;
    diagnose::Diagnosis diagnosis;
    std::string failed = {};  ///< what right outputs' own run failed at
  };

  [[nodiscard]] Answer diagnosed(const diagnose::GatherRequest& request) const {
    return diagnosed(diagnose::gather(request, catalog(), &find_op));
  }

  [[nodiscard]] Answer diagnosed(diagnose::Gathered gathered) const {
    gathered.subject.simulator = simulator_;
    diagnose::Diagnosis diagnosis = diagnose::diagnose(gathered.subject, effort());
    return {std::move(gathered), std::move(diagnosis)};
  }

  [[nodiscard]] diagnose::Effort effort() const {
    const std::string word = effort_.empty() ? "normal" : effort_;
    require_known(word, "value of --effort", {"quick", "normal", "thorough"});
    constexpr double kThorough = 600, kQuickSingles = 10;
    diagnose::Effort effort;
    if (word == "quick") {
      effort.singles_s = kQuickSingles;
      effort.pairs_s = 0;
    } else if (word == "thorough") {
      effort.singles_s = effort.pairs_s = kThorough;
    }
    return effort;
  }

  [[nodiscard]] std::string text_of(const Context& context, const Answer& answer) const {
    return context.common.verbosity() < 0
               ? diagnosis_line(answer.diagnosis, answer.failed.empty()
                                                      ? notice_of(answer)
                                                      : "but their run failed: " + core::printable(answer.failed))
               : diagnosis_text(answer.gathered.subject, answer.diagnosis, around(answer),
                                context.common.verbosity() > 0, context.terminal.colour_on_stdout());
  }

  [[nodiscard]] nlohmann::json json_of(const Answer& answer) const {
    nlohmann::json json = diagnose::diagnosis_json(answer.gathered.subject, answer.diagnosis, answer.gathered.notes);
    json["reproduce"] = again(answer);
    if (!case_.empty()) {
      json["simulated"] = answer.gathered.subject.device.simulated;
    }
    return json;
  }

  /// Of a case that ran. What somebody's tensors were computed on, nobody knows.
  [[nodiscard]] std::string notice_of(const Answer& answer) const {
    const machine::Device& device = answer.gathered.subject.device;
    return !case_.empty() && device.simulated ? report::views::notice_of_simulated(device.sm) : std::string();
  }

  [[nodiscard]] Surroundings around(const Answer& answer) const {
    return {.notice = notice_of(answer), .notes = answer.gathered.notes, .again = again(answer)};
  }

  /// The command that gives this answer.
  [[nodiscard]] std::string again(const Answer& answer) const {
    if (case_.empty()) {
      return diagnose_again(tensors_, {.against = against_, .device = device_, .effort = effort_},
                            answer.gathered.subject);
    }
    std::string text =
        fmt::format("te-numcheck diagnose --case {} {}", shell_word(case_), shell_word(as_argument(tensors_.op)));
    for (const auto& [option, value] : {std::pair{"--device", &device_}, std::pair{"--effort", &effort_}}) {
      text += value->empty() ? std::string() : fmt::format(" {} {}", option, shell_word(*value));
    }
    return text;
  }

  core::ExitCode answer(Context& context, const Answer& answer) const {
    if (json_ != "-" && html_ != "-") {  // before files, of which a full disk must not take the answer along
      context.terminal.out(text_of(context, answer));
    }
    if (!json_.empty()) {
      write_json(context, json_of(answer));
    }
    if (!html_.empty()) {
      const std::string page = diagnosis_html(answer.gathered.subject, answer.diagnosis, around(answer));
      html_ == "-" ? context.terminal.data(page) : core::write_file(html_, page);
    }
    return exit_code(answer.diagnosis);
  }

  /// Two results, each by itself, and how far they are from each other.
  core::ExitCode compare(Context& context, const GivenTensors& given, const diagnose::GatherRequest& first,
                         const data::TensorFile& second) const {
    diagnose::Gathered gathered = diagnose::gather(first, catalog(), &find_op);
    std::vector<std::string> outputs;
    for (const auto& [port, bytes] : gathered.subject.outputs) {
      outputs.push_back(port);
    }
    diagnose::Gathered others =
        diagnose::gather(given.with_file(first, {against_, second}, outputs), catalog(), &find_op);
    const Answer one = diagnosed(std::move(gathered)), other = diagnosed(std::move(others));
    const std::vector<diagnose::Apart> apart = diagnose::apart(one.gathered.subject, other.gathered.subject);
    const std::vector<diagnose::Apart> inputs = diagnose::inputs_apart(one.gathered.subject, other.gathered.subject);
    if (json_ != "-") {
      context.terminal.out(apart_text(apart, context.terminal.colour_on_stdout()) +
                           inputs_apart_text(inputs, context.terminal.colour_on_stdout()) + "\n" +
                           core::printable(given.paths().front()) + "\n" + text_of(context, one) + "\n" +
                           core::printable(against_) + "\n" + text_of(context, other));
    }
    if (!json_.empty()) {
      write_json(context, {{"first", json_of(one)},
                           {"second", json_of(other)},
                           {"apart", diagnose::apart_json(apart, "output")},
                           {"inputs_apart", diagnose::apart_json(inputs, "input")}});
    }
    const core::ExitCode codes[] = {exit_code(one.diagnosis), exit_code(other.diagnosis)};
    return codes[0] == core::ExitCode::success || codes[1] == core::ExitCode::numerics_differ ? codes[1] : codes[0];
  }

  static core::ExitCode exit_code(const diagnose::Diagnosis& diagnosis) {
    switch (diagnosis.kind) {
      case diagnose::Diagnosis::Kind::correct:
        return core::ExitCode::success;
      case diagnose::Diagnosis::Kind::undecided:
        return core::ExitCode::nothing_verified;
      case diagnose::Diagnosis::Kind::misbehaved:
      case diagnose::Diagnosis::Kind::explained:
      case diagnose::Diagnosis::Kind::unexplained:
        break;
    }
    return core::ExitCode::numerics_differ;
  }

  /// What the outputs were computed on. No device is used, so that a card cannot be asked.
  [[nodiscard]] int architecture() const {
    const machine::DeviceChoice choice = machine::parse_device(device_.empty() ? "auto" : device_);
    if (choice.kind == machine::DeviceChoice::Kind::cuda) {
      throw core::UsageError(
          fmt::format("--device {}: diagnose runs nothing on a device; give the architecture of the one that computed "
                      "the outputs, as "
                      "sim:sm_90",
                      device_));
    }
    return choice.sm;
  }

  void write_json(Context& context, const nlohmann::json& json) const {
    const std::string text = stdout_json(json, 1);
    json_ == "-" ? context.terminal.data(text) : core::write_file(json_, text);
  }

  TensorOptions tensors_;
  std::string against_, device_, json_, html_, case_, effort_;
  std::shared_ptr<const diagnose::Simulator> simulator_;
};

}  // namespace

std::unique_ptr<Command> make_diagnose_command() {
  return std::make_unique<DiagnoseCommand>();
}

}  // namespace numcheck::app::commands
