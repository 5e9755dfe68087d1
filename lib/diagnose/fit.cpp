#include "diagnose/fit.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagnose/fit_groups.hpp"
#include "diagnose/shape_probe.hpp"
#include "diagnose/size_equations.hpp"
#include "op/grouped_gemm.hpp"
#include "plan/reporter.hpp"

namespace numcheck::diagnose {
namespace {

using op::Field;
using op::FieldKind;
using op::Params;

bool counts_matrices(const Field& field) {
  return field.name == "batch" || field.name == "batches";
}

/// The values that were chosen, and defaults.
Params chosen_params(const op::Op& op, const ChosenParams& chosen) {
  Params params;
  for (const Field& field : op.fields()) {
    const auto found = chosen.find(field.name);
    params.push_back(found == chosen.end() ? field.fallback : found->second);
  }
  return params;
}

/// The fields that shapes may tell: integers that must be chosen, and the number of matrices, which ops call by these names,
/// unless what was chosen is for one matrix.
std::vector<std::size_t> size_fields(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen) {
  const std::vector<Field>& fields = op.fields();
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool may_be = fields[i].required || counts_matrices(fields[i]);
    if (may_be && fields[i].kind == FieldKind::integer && !chosen.contains(fields[i].name)) {
      all.push_back(i);
    }
  }
  std::vector<std::size_t> of_one = all;
  std::erase_if(of_one, [&fields](std::size_t i) { return counts_matrices(fields[i]); });
  const auto is_legal = [&, params = chosen_params(op, chosen)](const std::vector<std::size_t>& sizes) {
    return !ShapeProbe(op, mode, sizes).ports(params).empty();
  };
  return !is_legal(all) && is_legal(of_one) ? of_one : all;
}

class Fitter {
 public:
  Fitter(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen, std::span<const TensorShape> shapes)
      : op_(op),
        mode_(mode),
        chosen_(chosen),
        shapes_(shapes),
        fields_(op.fields()),
        probe_(op, mode, size_fields(op, mode, chosen)),
        params_(chosen_params(op, chosen)) {}

  [[nodiscard]] bool may_have(std::string_view port) { return probe_.has_port(params_, port) || turn_on(port); }

  Fit fit() {
    find_switches();
    if (!fit_.mistakes.empty()) {
      return std::move(fit_);
    }
    const Params without = params_;
    std::vector<std::string> first_mistakes;
    for (const std::vector<std::size_t>& turned : turns()) {
      params_ = without;
      for (const std::size_t field : turned) {
        params_[field] = !std::get<bool>(params_[field]);
      }
      fit_.mistakes.clear();
      solve();
      if (fit_.mistakes.empty()) {
        for (const std::size_t field : turned) {
          note(field);
        }
        fit_.params = params_;
        return std::move(fit_);
      }
      if (first_mistakes.empty()) {
        first_mistakes = fit_.mistakes;
      }
    }
    fit_.mistakes = first_mistakes;
    return std::move(fit_);
  }

 private:
  [[nodiscard]] bool is_chosen(std::size_t field) const { return chosen_.contains(fields_[field].name); }

  void note(std::size_t field) {
    const auto* truth = std::get_if<bool>(&params_[field]);
    const std::string text = truth == nullptr ? op::value_text(params_[field]) : *truth ? "true" : "false";
    fit_.notes.push_back(fmt::format("{} = {}", fields_[field].name, text));
  }

  /// 1 stands for any number: where it is not one of the field's, nobody but the caller knows which.
  void note_or_ask(std::size_t field, std::string_view port) {
    const Field& f = fields_[field];
    if (const auto* number = std::get_if<double>(&params_[field]); number != nullptr && *number > f.maximum) {
      fit_.mistakes.push_back(fmt::format("{} is given, and no tensor tells {} ({}): give it with --param {}=NUMBER",
                                          port, f.name, f.doc, f.name));
    } else {
      note(field);
    }
  }

  /// Other values of a field that may bring a port.
  [[nodiscard]] static std::vector<op::Value> others(const Field& field, const op::Value& value) {
    std::vector<op::Value> values;
    if (field.kind == FieldKind::boolean) {
      values.emplace_back(!std::get<bool>(value));
    } else if (field.kind == FieldKind::number) {
      values.emplace_back(1.0);
    } else if (field.kind == FieldKind::choice) {
      for (const std::string_view choice : field.choices) {
        values.emplace_back(std::string(choice));
      }
    }
    return values;
  }

  void find_switches() {
    for (const TensorShape& shape : shapes_) {
      if (may_have(shape.port)) {
        continue;
      }
      std::vector<std::string_view> names;
      for (const op::Port& port : probe_.ports(params_)) {
        names.push_back(port.name);
      }
      fit_.mistakes.push_back(fmt::format("{} has no tensor {} with these parameters; it has {}", op_.name,
                                          plan::quote(shape.port), fmt::join(names, ", ")));
    }
  }

  bool turn_on(std::string_view port) {
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      for (const op::Value& value : is_chosen(i) ? std::vector<op::Value>{} : others(fields_[i], params_[i])) {
        Params turned = params_;
        turned[i] = value;
        if (probe_.has_port(turned, port)) {
          params_ = std::move(turned);
          note_or_ask(i, port);
          return true;
        }
      }
    }
    return false;
  }

  /// Subsets of the switches that exchange dimensions, smallest first.
  [[nodiscard]] std::vector<std::vector<std::size_t>> turns() const {
    std::vector<std::size_t> switches;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].kind == FieldKind::boolean && !is_chosen(i) && probe_.exchanges_dims(params_, i)) {
        switches.push_back(i);
      }
    }
    std::vector<std::vector<std::size_t>> subsets;
    for (std::size_t bits = 0; bits < (std::size_t{1} << switches.size()); ++bits) {
      std::vector<std::size_t> subset;
      for (std::size_t i = 0; i < switches.size(); ++i) {
        if ((bits >> i & 1U) != 0) {
          subset.push_back(switches[i]);
        }
      }
      subsets.push_back(std::move(subset));
    }
    std::ranges::stable_sort(subsets, {}, [](const auto& subset) { return subset.size(); });
    return subsets;
  }

  void solve() { fit_.mistakes = solve_sizes({op_, mode_, chosen_, shapes_, probe_}, params_); }

  const op::Op& op_;
  const op::Mode& mode_;
  const ChosenParams& chosen_;
  std::span<const TensorShape> shapes_;
  const std::vector<Field>& fields_;
  ShapeProbe probe_;
  Params params_;
  Fit fit_;
};

}  // namespace

bool may_have_port(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen, std::string_view name) {
  if (&op != &op::grouped_gemm()) {
    return Fitter(op, mode, chosen, {}).may_have(name);
  }
  const std::optional<ChosenParams> with_group = chosen_with_group(chosen, name);
  return with_group.has_value() && Fitter(op, mode, *with_group, {}).may_have(name);
}

Fit fit_params(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen,
               std::span<const TensorShape> shapes) {
  if (&op != &op::grouped_gemm()) {
    return Fitter(op, mode, chosen, shapes).fit();
  }
  GroupSizes found = fit_group_sizes(mode, chosen, shapes);
  if (!found.mistakes.empty()) {
    return {.params = {}, .notes = {}, .mistakes = std::move(found.mistakes)};
  }
  Fit fit = Fitter(op, mode, found.chosen, shapes).fit();
  fit.notes.insert(fit.notes.begin(), found.notes.begin(), found.notes.end());
  return fit;
}

}  // namespace numcheck::diagnose
