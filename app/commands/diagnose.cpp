// te-numcheck diagnose: somebody's tensors, judged, and if they are wrong, why. Needs no device.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
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
#include "core/json_depth.hpp"
#include "core/strings.hpp"
#include "data/tensor_file.hpp"
#include "diagnose/diagnosis_json.hpp"
#include "diagnose/gather.hpp"
#include "diagnose/search.hpp"
#include "diagnosis_text.hpp"
#include "execution_options.hpp"
#include "machine/device.hpp"
#include "output_checks.hpp"
#include "screen_text.hpp"

namespace numcheck::app::commands {
namespace {

using diagnose::NamedTensor;

std::vector<std::string_view> op_names() {
  std::vector<std::string_view> names;
  for (const prepare::CatalogRow& row : catalog()) {
    names.push_back(row.op->name);
  }
  return names;
}

const CommandInfo& command_info() {
  static const CommandInfo info{
      .name = "diagnose",
      .summary = "judge the inputs and outputs of an op that somebody saved, and say why outputs are wrong",
      .usage = "[OPTIONS] [OP]",
      .examples = {"diagnose gemm --tensors step.safetensors --map a=x,b=weight,d=y --param trans_b=true",
                   "diagnose layernorm_fwd --in x=x.npy --in gamma=g.npy --in beta=b.npy --out y=y.npy"},
      .exit_codes = {0, 1, 2, 3, 4},
      .words = op_names(),
      .takes_files = true,
  };
  return info;
}

/// "a=x" as {"a", "x"}.
std::pair<std::string, std::string> split_assignment(const std::string& text, std::string_view option) {
  const std::size_t place = text.find('=');
  if (place == 0 || place == std::string::npos || place + 1 == text.size()) {
    throw core::UsageError(fmt::format("{} needs NAME=VALUE, not \"{}\"", option, text));
  }
  return {text.substr(0, place), text.substr(place + 1)};
}

template <class T>
bool reads_as(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

op::Value parse_param(const op::Field& field, const std::string& text) {
  std::int64_t integer = 0;
  double number = 0;
  switch (field.kind) {
    case op::FieldKind::boolean:
      if (text == "true" || text == "false" || text == "1" || text == "0") {
        return text == "true" || text == "1";
      }
      throw core::UsageError(fmt::format("--param {}: true or false, not \"{}\"", field.name, text));
    case op::FieldKind::integer:
      if (reads_as(text, integer)) {
        return integer;
      }
      throw core::UsageError(fmt::format("--param {}: a whole number, not \"{}\"", field.name, text));
    case op::FieldKind::number:
      if (reads_as(text, number) && std::isfinite(number)) {
        return number;
      }
      throw core::UsageError(fmt::format("--param {}: a number, not \"{}\"", field.name, text));
    case op::FieldKind::choice:
      break;
  }
  require_known(text, fmt::format("value of {}", field.name), field.choices);
  return text;
}

class DiagnoseCommand : public Command {
 public:
  [[nodiscard]] const CommandInfo& info() const override { return command_info(); }

  void add_options(CLI::App& cli) override {
    cli.add_option("op", op_, "the op that the tensors are of; files of run --keep-tensors say it")->type_name("OP");
    cli.add_option("--tensors", files_, "safetensors or .npy with inputs and outputs; may be repeated")
        ->type_name("FILE")
        ->group("Tensors");
    cli.add_option("--map", map_, "names in these files, by port: a=x,b=weight [those of the ports]")
        ->type_name("PORT=NAME,...")
        ->group("Tensors");
    cli.add_option("--in", inputs_, "an input from a file of its own; may be repeated")
        ->type_name("PORT=FILE")
        ->group("Tensors");
    cli.add_option("--out", outputs_, "an output from a file of its own; may be repeated")
        ->type_name("PORT=FILE")
        ->group("Tensors");
    cli.add_option("--dtype", dtypes_, "what raw or integer elements hold: a=bf16")
        ->type_name("PORT=FORMAT")
        ->group("Tensors");
    cli.add_option("--mode", mode_, "what the op was asked to compute in [from the tensors' formats]")
        ->type_name("MODE");
    cli.add_option("--param", params_, "a parameter of the op that the shapes do not tell; may be repeated")
        ->type_name("NAME=VALUE");
    cli.add_option("--json", json_, "write the diagnosis to this file; - writes it, and nothing else, to stdout")
        ->type_name("PATH")
        ->group("Output");
    cli.add_option("--device", device_, "what computed the outputs, as sim:sm_90 [sim:sm_90]")->type_name("DEVICE");
  }

  [[nodiscard]] core::ExitCode run(Context& context) override {
    diagnose::GatherRequest request;
    request.sm = architecture();
    open_files();
    if (!json_.empty()) {
      check_requested_files({{"--json", json_}}, files_);
    }
    choose_op(request);
    read_params(request);
    read_tensors(request);
    const diagnose::Gathered gathered = diagnose::gather(request, catalog(), &find_op);
    constexpr double kDeclaredFlops = 1.5e12;
    constexpr double kTrialFlops = 2e9;
    const diagnose::Diagnosis diagnosis = diagnose::diagnose(gathered.subject, kDeclaredFlops, kTrialFlops);
    if (!json_.empty()) {
      write_json(context, diagnose::diagnosis_json(gathered.subject, diagnosis, gathered.notes));
    }
    if (json_ == "-") {
      return exit_code(diagnosis);
    }
    context.terminal.out(diagnosis_text(gathered.subject, diagnosis, gathered.notes, context.common.verbosity() > 0,
                                        context.terminal.colour_on_stdout()));
    return exit_code(diagnosis);
  }

 private:
  static core::ExitCode exit_code(const diagnose::Diagnosis& diagnosis) {
    switch (diagnosis.kind) {
      case diagnose::Diagnosis::Kind::correct:
        return core::ExitCode::success;
      case diagnose::Diagnosis::Kind::undecided:
        return core::ExitCode::nothing_verified;
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

  void read_params(diagnose::GatherRequest& request) const {
    std::vector<std::string_view> names;
    for (const op::Field& field : request.op->fields()) {
      names.push_back(field.name);
    }
    for (const std::string& text : params_) {
      const auto [name, value] = split_assignment(text, "--param");
      require_known(name, fmt::format("parameter of {}", request.op->name), names);
      request.params[name] = parse_param(request.op->fields()[*op::field_index(*request.op, name)], value);
    }
  }

  /// The common files, and those of single tensors, which then are files that --json must not replace either.
  void open_files() {
    for (const std::string& path : files_) {
      opened_.push_back(data::TensorFile::open(path));
    }
    for (const auto& [list, option] : {std::pair{&inputs_, "--in"}, std::pair{&outputs_, "--out"}}) {
      for (const std::string& text : *list) {
        const auto [port, path] = split_assignment(text, option);
        single_.emplace_back(port, data::TensorFile::open(path));
        if (single_.back().second.tensors().size() != 1) {
          throw core::UsageError(
              fmt::format("{} holds {} tensors: give it with --tensors, and say with --map which is {}", path,
                          single_.back().second.tensors().size(), port));
        }
        files_.push_back(path);
      }
    }
  }

  /// The op and mode that were asked for, or those of the case whose tensors run --keep-tensors has written.
  void choose_op(diagnose::GatherRequest& request) const {
    request.mode = mode_;
    if (!op_.empty()) {
      require_known(op_, "op", op_names());
      request.op = find_op(op_);
      return;
    }
    for (const data::TensorFile& file : opened_) {
      const auto text = file.texts().find("exec");
      if (text == file.texts().end()) {
        continue;
      }
      const nlohmann::json json = core::nests_deeper(text->second)
                                      ? nlohmann::json(nlohmann::json::value_t::discarded)
                                      : nlohmann::json::parse(text->second, nullptr, false);
      if (json.is_discarded()) {
        throw core::UsageError("the file's text \"exec\" is not the JSON of a case");
      }
      const plan::Case c = plan::case_from_json(json, &find_op);
      request.op = c.op;
      request.mode = mode_.empty() ? std::string(c.mode->name) : mode_;
      for (std::size_t i = 0; i < c.params.size(); ++i) {
        const op::Field& field = c.op->fields()[i];
        if (!field.storage_only || field.kind != op::FieldKind::integer) {  // tensors of files have no padding
          request.params[std::string(field.name)] = c.params[i];
        }
      }
      return;
    }
    throw core::UsageError("diagnose needs the op that the tensors are of, such as gemm: te-numcheck list ops");
  }

  /// Tensors of the common files, by the map or by the names of ports, then those that have files of their own.
  void read_tensors(diagnose::GatherRequest& request) {
    std::map<std::string, std::string> names;
    for (const std::string& text : split_lists(map_, "--map")) {
      const auto [port, name] = split_assignment(text, "--map");
      if (!names.emplace(port, name).second) {
        throw core::UsageError(fmt::format("--map names {} twice", port));
      }
    }
    for (const data::TensorFile& file : opened_) {
      for (const data::FileTensor& tensor : file.tensors()) {
        for (const auto& [port, name] : names) {  // one tensor may be several: a product with itself
          if (name == tensor.name) {
            add(request, port, tensor, false);
          }
        }
        if (names.empty()) {
          add(request, tensor.name, tensor, true);
        }
      }
    }
    for (const auto& [port, name] : names) {
      if (std::ranges::find(request.tensors, port, &NamedTensor::port) == request.tensors.end()) {
        throw core::UsageError(fmt::format("--map {}={}: none of the files has a tensor of that name", port, name));
      }
    }
    for (const auto& [port, file] : single_) {
      add(request, port, file.tensors().front(), false);
    }
    set_formats(request);
    if (request.tensors.empty()) {
      throw core::UsageError("diagnose needs the op's tensors: --tensors FILE, or --in PORT=FILE and --out PORT=FILE");
    }
  }

  static void add(diagnose::GatherRequest& request, const std::string& port, const data::FileTensor& tensor,
                  bool may_be_other) {
    if (std::ranges::find(request.tensors, port, &NamedTensor::port) != request.tensors.end()) {
      throw core::UsageError(fmt::format("{} is given twice", port));
    }
    request.tensors.push_back({port, tensor, may_be_other});
  }

  void set_formats(diagnose::GatherRequest& request) const {
    for (const std::string& text : dtypes_) {
      const auto [port, format] = split_assignment(text, "--dtype");
      const auto named = std::ranges::find(request.tensors, port, &NamedTensor::port);
      if (named == request.tensors.end()) {
        throw core::UsageError(fmt::format("--dtype {}={}: no tensor is given for {}", port, format, port));
      }
      const std::optional<core::Dtype> dtype = core::parse_dtype(format);
      if (!dtype.has_value()) {
        throw core::UsageError(fmt::format("--dtype {}: unknown format \"{}\"", port, format));
      }
      named->tensor = data::read_as(named->tensor, *dtype);
    }
  }

  std::string op_, mode_, device_, json_;
  std::vector<std::string> files_, map_, inputs_, outputs_, dtypes_, params_;
  std::vector<data::TensorFile> opened_;
  std::vector<std::pair<std::string, data::TensorFile>> single_;  ///< by port
};

}  // namespace

std::unique_ptr<Command> make_diagnose_command() {
  return std::make_unique<DiagnoseCommand>();
}

}  // namespace numcheck::app::commands
