#include "explain_op.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/strings.hpp"
#include "data/distribution.hpp"
#include "page_text.hpp"
#include "report/views/text_table.hpp"
#include "tolerance/gate_table.hpp"

namespace numcheck::app {
namespace {

using report::views::Cell;

std::string plan_text(const op::Value& value) {
  const auto* flag = std::get_if<bool>(&value);
  return flag == nullptr ? op::value_text(value) : *flag ? "true" : "false";
}

std::string legal_values(const op::Field& field) {
  switch (field.kind) {
    case op::FieldKind::boolean:
      return "true, false";
    case op::FieldKind::choice:
      return field.choices.empty() ? "text" : fmt::format("{}", fmt::join(field.choices, ", "));
    case op::FieldKind::integer:
    case op::FieldKind::number:
      break;
  }
  return fmt::format("{} to {}", core::shortest(field.minimum), core::shortest(field.maximum));
}

std::string params_table(const op::Op& op, bool colour) {
  std::vector<std::vector<Cell>> rows;
  for (const op::Field& field : op.fields()) {
    rows.push_back({{std::string(field.name)},
                    {std::string(field.tag)},
                    {field.required ? "required" : plan_text(field.fallback)},
                    {legal_values(field)},
                    {std::string(field.doc)}});
  }
  return report::views::render_table({{"parameter"}, {"in ids"}, {"default"}, {"values"}, {"meaning"}}, rows, 0,
                                     colour);
}

/// A port, and the setting that makes it appear.
struct SeenPort {
  op::Port port;
  std::string when;
};

/// Parameters with small dimensions and all other defaults.
op::Params small_params(const op::Op& op) {
  constexpr std::int64_t kDim = 32;  // whole blocks of every scaling recipe but those of 128
  op::Params params;
  for (const op::Field& field : op.fields()) {
    params.push_back(field.required && field.kind == op::FieldKind::integer ? op::Value(kDim) : field.fallback);
  }
  return params;
}

/// Every value that differs from the default and can make a port appear.
std::vector<op::Value> other_values(const op::Field& field) {
  std::vector<op::Value> values;
  if (field.kind == op::FieldKind::boolean) {
    values.emplace_back(!std::get<bool>(field.fallback));
  } else if (field.kind == op::FieldKind::number) {
    values.emplace_back(std::get<double>(field.fallback) == 1 ? 2.0 : 1.0);
  } else if (field.kind == op::FieldKind::choice) {
    for (const std::string_view choice : field.choices) {
      values.emplace_back(std::string(choice));
    }
  }
  return values;
}

void note_ports(const op::Op& op, const op::Params& params, const op::Mode& mode, const std::string& when,
                std::vector<SeenPort>& seen) {
  if (!op.check(params, mode).empty()) {
    return;
  }
  for (const op::Port& port : op.ports(params, mode)) {
    const auto same_name = [&port](const SeenPort& other) { return other.port.name == port.name; };
    if (std::ranges::none_of(seen, same_name)) {
      seen.push_back({port, when});
    }
  }
}

/// One parameter with a value that is not its default.
struct Setting {
  std::size_t field = 0;
  op::Value value;
};

std::vector<Setting> settings_of(const op::Op& op) {
  std::vector<Setting> settings;
  for (std::size_t i = 0; i < op.fields().size(); ++i) {
    for (op::Value& value : other_values(op.fields()[i])) {
      settings.push_back({i, std::move(value)});
    }
  }
  return settings;
}

std::string setting_text(const op::Op& op, const Setting& setting) {
  return fmt::format("{} = {}", op.fields()[setting.field].name, plan_text(setting.value));
}

/// All ports that exist with some setting, found by trying: the default, then modes, then one parameter at a time, then
/// two.
std::vector<SeenPort> all_ports(const op::Op& op) {
  const op::Params base = small_params(op);
  const std::vector<Setting> settings = settings_of(op);
  const auto changed = [](op::Params params, const Setting& setting) {
    params[setting.field] = setting.value;
    return params;
  };
  std::vector<SeenPort> seen;
  bool first = true;
  for (const std::string_view name : op.modes) {
    note_ports(op, base, *op::find_mode(name), first ? "always" : fmt::format("mode {}", name), seen);
    first = false;
  }
  for (const std::string_view name : op.modes) {
    for (const Setting& setting : settings) {
      note_ports(op, changed(base, setting), *op::find_mode(name), setting_text(op, setting), seen);
    }
  }
  const op::Mode& mode = *op::find_mode(op.modes.front());
  for (const Setting& one : settings) {
    for (const Setting& other : settings) {
      if (one.field < other.field) {
        note_ports(op, changed(changed(base, one), other), mode, setting_text(op, one) + ", " + setting_text(op, other),
                   seen);
      }
    }
  }
  return seen;
}

const char* role_name(const op::Port& port) {
  switch (port.role) {
    case op::Role::input:
      return port.has_distribution() ? "input" : "computed";
    case op::Role::scale:
      return "scale";
    case op::Role::output:
      return "output";
    case op::Role::amax:
      return "amax";
  }
  return "";
}

std::string ports_table(const op::Op& op, bool colour) {
  std::vector<std::vector<Cell>> rows;
  for (const SeenPort& seen : all_ports(op)) {
    rows.push_back({{std::string(seen.port.name)}, {role_name(seen.port)}, {seen.when}, {std::string(seen.port.doc)}});
  }
  return report::views::render_table({{"port"}, {"role"}, {"for example with"}, {"meaning"}}, rows, 0, colour);
}

/// Of the op's first output.
core::Dtype output_format(const op::Op& op, const op::Mode& mode) {
  const std::vector<op::Port> ports = op.ports(small_params(op), mode);
  const auto output = std::ranges::find(ports, op::Role::output, &op::Port::role);
  return output == ports.end() ? mode.output : output->dtype;
}

std::string modes_table(const op::Op& op, bool colour) {
  std::vector<std::vector<Cell>> rows;
  for (const std::string_view name : op.modes) {
    const op::Mode& mode = *op::find_mode(name);
    rows.push_back({{std::string(name)},
                    {std::string(core::dtype_info(mode.first).name)},
                    {std::string(core::dtype_info(mode.second).name)},
                    {std::string(core::dtype_info(output_format(op, mode)).name)},
                    {mode_doc(mode, op)}});
  }
  return report::views::render_table({{"mode"}, {"first"}, {"second"}, {"output"}, {"meaning"}}, rows, 0, colour);
}

std::string distributions_table(bool colour) {
  std::vector<std::vector<Cell>> rows;
  for (const data::DistributionInfo& info : data::all_distributions()) {
    std::string parameters;
    for (const op::Field& field : info.fields()) {
      parameters += (parameters.empty() ? "" : ", ") + std::string(field.name) + "=" + plan_text(field.fallback);
    }
    rows.push_back({{std::string(info.name)}, {parameters}, {std::string(info.doc)}});
  }
  return report::views::render_table({{"inputs"}, {"parameters"}, {"meaning"}}, rows, 0, colour);
}

/// What each gate measures; limits are in `explain gates`.
std::string gates_table() {
  constexpr std::size_t kWidth = 100;
  std::vector<Term> terms;
  for (const tolerance::GateInfo& gate : tolerance::gate_table()) {
    terms.push_back({std::string(gate.name), std::string(gate.measures)});
  }
  return "gates, in order; measured <= limit passes, so NaN fails (limits: te-numcheck explain gates)\n" +
         render_terms(terms, kWidth);
}

/// Gates that only this op has, below the others.
std::string own_gates(const prepare::CatalogRow& row) {
  std::size_t width = 0;
  for (const op::OwnGate& gate : row.reference.gates) {
    width = std::max(width, gate.name.size());
  }
  std::string text;
  for (const op::OwnGate& gate : row.reference.gates) {
    text += fmt::format("{}{:<{}}  {}\n", text.empty() ? "\ngates of this op\n" : "", gate.name, width, gate.doc);
  }
  return text;
}

std::string statistics_list(const op::Op& op) {
  return op.statistics.empty()
             ? ""
             : fmt::format("\nstatistics, which a plan's tolerance may limit\n{}\n", fmt::join(op.statistics, ", "));
}

}  // namespace

std::string mode_doc(const op::Mode& mode, const op::Op& op) {
  if (op.multiplies_matrices) {
    return std::string(mode.doc);
  }
  std::string format(core::dtype_info(mode.first).name);
  std::ranges::transform(format, format.begin(), [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  const bool rounds_products = mode.first == core::Dtype::fp32 && mode.compute != op::Compute::fp32;
  return format + (mode.scaled ? " with per-tensor scales" : " storage") + ", computed in FP32" +
         (rounds_products ? ": there are no products that the mode could round" : "");
}

std::string explain_op(const prepare::CatalogRow& row, bool colour) {
  const op::Op& op = *row.op;
  return fmt::format("{}: {}\n\n  {}\n\n{}source: {}\nreference: {}\nbackends: {}\n\n{}\n{}\n{}\n{}\n{}{}{}", op.name,
                     op.summary, op.formula, op.rules.empty() ? "" : std::string(op.rules) + "\n", op.source,
                     row.reference.version, fmt::join(prepare::backend_names(row), ", "), ports_table(op, colour),
                     params_table(op, colour), modes_table(op, colour), distributions_table(colour), gates_table(),
                     own_gates(row), statistics_list(op));
}

}  // namespace numcheck::app
