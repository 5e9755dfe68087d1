#include "given_tensors.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "arguments.hpp"
#include "catalog.hpp"
#include "core/error.hpp"
#include "diagnose/tensor_listing.hpp"
#include "kept_file.hpp"

namespace numcheck::app {
namespace {

using diagnose::NamedTensor;

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

/// Throws core::UsageError if the op does not take that number.
template <class T>
T in_range(const op::Field& field, T value) {
  const auto number = static_cast<double>(value);
  if (number < field.minimum || number > field.maximum) {
    throw core::UsageError(
        fmt::format("--param {}: {} must be between {:g} and {:g}", field.name, value, field.minimum, field.maximum));
  }
  return value;
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
        return in_range(field, integer);
      }
      throw core::UsageError(fmt::format("--param {}: a whole number, not \"{}\"", field.name, text));
    case op::FieldKind::number:
      if (reads_as(text, number) && std::isfinite(number)) {
        return in_range(field, number);
      }
      throw core::UsageError(fmt::format("--param {}: a number, not \"{}\"", field.name, text));
    case op::FieldKind::choice:
      break;
  }
  if (!field.choices.empty()) {
    require_known(text, fmt::format("value of {}", field.name), field.choices);
  }
  return text;
}

void add(diagnose::GatherRequest& request, const std::string& port, const data::FileTensor& tensor, bool may_be_other) {
  if (std::ranges::find(request.tensors, port, &NamedTensor::port) != request.tensors.end()) {
    throw core::UsageError(fmt::format("{} is given twice", port));
  }
  request.tensors.push_back({port, tensor, may_be_other});
}

}  // namespace

bool TensorOptions::any() const {
  return !mode.empty() || std::ranges::any_of(std::array{&files, &map, &inputs, &outputs, &dtypes, &params},
                                              [](const auto* list) { return !list->empty(); });
}

std::vector<std::string_view> op_names() {
  std::vector<std::string_view> names;
  for (const prepare::CatalogRow& row : catalog()) {
    names.push_back(row.op->name);
  }
  return names;
}

void add_tensor_options(CLI::App& cli, TensorOptions& options) {
  cli.add_option("op", options.op, "the op that the tensors are of; files of run --keep-tensors say it")
      ->type_name("OP");
  cli.add_option("--tensors", options.files, "safetensors or .npy with inputs and outputs; may be repeated")
      ->type_name("FILE")
      ->group("Tensors");
  cli.add_option("--map", options.map,
                 "names in these files, by port: a=x,b=weight; ports that it does not name have their own names there")
      ->type_name("PORT=NAME,...")
      ->group("Tensors");
  cli.add_option("--in", options.inputs, "an input from a file of its own; may be repeated")
      ->type_name("PORT=FILE")
      ->group("Tensors");
  cli.add_option("--out", options.outputs, "an output from a file of its own; may be repeated")
      ->type_name("PORT=FILE")
      ->group("Tensors");
  cli.add_option("--dtype", options.dtypes, "what raw or integer elements hold: a=bf16,b=bf16")
      ->type_name("PORT=FORMAT,...")
      ->group("Tensors");
  cli.add_option("--mode", options.mode, "what the op was asked to compute in [from the tensors' formats]")
      ->type_name("MODE");
  cli.add_option("--param", options.params, "a parameter of the op that the shapes do not tell; may be repeated")
      ->type_name("NAME=VALUE");
}

GivenTensors::GivenTensors(const TensorOptions& options) : options_(options), paths_(options.files) {
  for (const std::string& text : split_lists(options.map, "--map")) {
    const auto [port, name] = split_assignment(text, "--map");
    if (std::ranges::find(names_, port, &std::pair<std::string, std::string>::first) != names_.end()) {
      throw core::UsageError(fmt::format("--map names {} twice", port));
    }
    names_.emplace_back(port, name);
  }
  for (const std::string& path : options.files) {
    opened_.push_back(data::TensorFile::open(path));
  }
  for (const auto& [list, option] : {std::pair{&options.inputs, "--in"}, std::pair{&options.outputs, "--out"}}) {
    for (const std::string& text : *list) {
      const auto [port, path] = split_assignment(text, option);
      single_.emplace_back(port, data::TensorFile::open(path));
      if (single_.back().second.tensors().size() != 1) {
        throw core::UsageError(
            fmt::format("{} holds {} tensors: give it with --tensors, and say with --map which is {}", path,
                        single_.back().second.tensors().size(), port));
      }
      paths_.push_back(path);
    }
  }
}

diagnose::GatherRequest GivenTensors::request(int sm) const {
  diagnose::GatherRequest request;
  request.sm = sm;
  choose_op(request);
  read_params(request);
  read_tensors(request);
  return request;
}

diagnose::GatherRequest GivenTensors::with_file(diagnose::GatherRequest request, const AgainstFile& against,
                                                std::span<const std::string> outputs) const {
  const data::TensorFile& file = against.file;
  std::vector<std::string> missing;
  const auto name_of = [&](const NamedTensor& named) -> const std::string& {
    const auto mapped = std::ranges::find(names_, named.port, &std::pair<std::string, std::string>::first);
    return mapped == names_.end() ? named.port : mapped->second;
  };
  const auto takes = [&](NamedTensor& named) {
    const auto tensor = std::ranges::find(file.tensors(), name_of(named), &data::FileTensor::name);
    // A .npy file has no names: it is the output, if one is given by itself.
    const bool is_output = file.tensors().size() == 1 && options_.outputs.size() == 1 &&
                           named.port == split_assignment(options_.outputs.front(), "--out").first;
    if (tensor != file.tensors().end() || is_output) {
      named.tensor = is_output ? file.tensors().front() : *tensor;
      return true;
    }
    return false;
  };
  // An output of the first file in place of one that is missing would be compared with itself.
  std::erase_if(request.tensors, [&](NamedTensor& named) {
    const bool is_missing = !takes(named) && std::ranges::find(outputs, named.port) != outputs.end();
    if (is_missing) {
      const std::string& name = name_of(named);
      missing.push_back(name == named.port ? name : fmt::format("{} (output {})", name, named.port));
    }
    return is_missing;
  });
  request.exact_leg = false;
  request.ran = {};
  if (const std::optional<plan::Case> c = case_of(file); c.has_value() && c->op == request.op && are_as_kept()) {
    take_run(file, *c, request);
    request.ran.drawn.reset();  // inputs may be those of the first file
  }
  if (missing.size() == outputs.size()) {
    throw core::UsageError(fmt::format("--against: {} has no {}; it has {}", against.path, fmt::join(missing, ", "),
                                       diagnose::listing(diagnose::shapes_of(file.tensors()))));
  }
  set_formats(request);
  return request;
}

void GivenTensors::read_params(diagnose::GatherRequest& request) const {
  std::vector<std::string_view> names;
  for (const op::Field& field : request.op->fields()) {
    names.push_back(field.name);
  }
  std::set<std::string, std::less<>> given;
  for (const std::string& text : options_.params) {
    const auto [name, value] = split_assignment(text, "--param");
    require_known(name, fmt::format("parameter of {}", request.op->name), names);
    if (!given.insert(name).second) {
      throw core::UsageError(fmt::format("--param names {} twice", name));
    }
    request.params[name] = parse_param(request.op->fields()[*op::field_index(*request.op, name)], value);
  }
}

std::string GivenTensors::failing_of_run() const {
  for (const data::TensorFile& file : opened_) {
    if (std::string failing = failing_of(file); !failing.empty()) {
      return failing;
    }
  }
  return "";
}

bool GivenTensors::are_as_kept() const {
  return opened_.size() == 1 && single_.empty() && names_.empty();
}

/// What the file says of the run that left it.
void GivenTensors::take_run(const data::TensorFile& file, const plan::Case& c, diagnose::GatherRequest& request) {
  if (request.mode != c.mode->name) {
    return;
  }
  request.exact_leg = c.inputs.exact_leg() && has_small_integers(file, c);
  if (std::optional<diagnose::Ran> ran = ran_of(file)) {
    request.ran = *std::move(ran);
    request.ran.drawn = c.inputs;
  }
}

/// The op and mode that were asked for, or those of the case whose tensors run --keep-tensors has written, with its parameters.
void GivenTensors::choose_op(diagnose::GatherRequest& request) const {
  request.mode = options_.mode;
  if (!options_.op.empty()) {
    require_known(options_.op, "op", op_names());
    request.op = find_op(options_.op);
  }
  for (const data::TensorFile& file : opened_) {
    const std::optional<plan::Case> kept = case_of(file);
    if (!kept.has_value() || (request.op != nullptr && request.op != kept->op)) {
      continue;
    }
    const plan::Case& c = *kept;
    request.op = c.op;
    request.mode = options_.mode.empty() ? std::string(c.mode->name) : options_.mode;
    if (are_as_kept()) {
      take_run(file, c, request);
    }
    for (std::size_t i = 0; i < c.params.size(); ++i) {
      const op::Field& field = c.op->fields()[i];
      if (!field.storage_only || field.kind != op::FieldKind::integer) {  // tensors of files have no padding
        request.params[std::string(field.name)] = c.params[i];
      }
    }
    return;
  }
  if (request.op == nullptr) {
    throw core::UsageError("diagnose needs the op that the tensors are of, such as gemm: te-numcheck list ops");
  }
}

/// Tensors of the common files, by the map and otherwise by the names of ports, then those that have files of their own.
void GivenTensors::read_tensors(diagnose::GatherRequest& request) const {
  std::vector<diagnose::TensorShape> all;
  for (const data::TensorFile& file : opened_) {
    std::ranges::move(diagnose::shapes_of(file.tensors()), std::back_inserter(all));
    for (const data::FileTensor& tensor : file.tensors()) {
      bool is_mapped = false;
      for (const auto& [port, name] : names_) {  // one tensor may be several: a product with itself
        if (name == tensor.name) {
          add(request, port, tensor, false);
          is_mapped = true;
        }
      }
      if (!is_mapped) {
        add_by_own_name(request, tensor);
      }
    }
  }
  for (const auto& [port, name] : names_) {
    if (std::ranges::find(request.tensors, port, &NamedTensor::port) == request.tensors.end()) {
      throw core::UsageError(fmt::format("--map {}={}: none of the files has a tensor of that name; they have {}", port,
                                         name, diagnose::listing(all)));
    }
  }
  for (const auto& [port, file] : single_) {
    add(request, port, file.tensors().front(), false);
  }
  set_formats(request);
  if (request.tensors.empty() && request.unnamed.empty()) {
    throw core::UsageError("diagnose needs the op's tensors: --tensors FILE, or --in PORT=FILE and --out PORT=FILE");
  }
}

/// A tensor that no option names. Beside a map, files may hold anything: what is not the op's is not even mentioned, unless
/// something is missing.
void GivenTensors::add_by_own_name(diagnose::GatherRequest& request, const data::FileTensor& tensor) const {
  const auto is_port = [&](std::string_view mode) {
    return diagnose::may_have_port(*request.op, *op::find_mode(mode), request.params, tensor.name);
  };
  const auto is_named = [&](const auto& list) {
    return std::ranges::any_of(list, [&](const auto& one) { return one.first == tensor.name; });
  };
  const bool is_beside_map = !names_.empty();
  if (is_beside_map && (is_named(names_) || is_named(single_) || std::ranges::none_of(request.op->modes, is_port))) {
    request.unnamed.push_back({tensor.name, tensor.shape});
  } else {
    add(request, tensor.name, tensor, true);
  }
}

void GivenTensors::set_formats(diagnose::GatherRequest& request) const {
  for (const std::string& text : split_lists(options_.dtypes, "--dtype")) {
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

}  // namespace numcheck::app
