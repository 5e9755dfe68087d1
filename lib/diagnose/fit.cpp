#include "diagnose/fit.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagnose/shape_probe.hpp"
#include "plan/reporter.hpp"

namespace numcheck::diagnose {
namespace {

using op::Field;
using op::FieldKind;
using op::Params;

/// Products stop there: sizes of files that lie may be anything.
constexpr std::int64_t kMostElements = std::int64_t{1} << 60;

std::int64_t times(std::int64_t a, std::int64_t b) {
  return b != 0 && a > kMostElements / b ? kMostElements : a * b;
}

/// The fields that shapes may tell: integers that must be chosen, and the number of matrices, which ops call by these names.
std::vector<std::size_t> size_fields(const op::Op& op, const ChosenParams& chosen) {
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < op.fields().size(); ++i) {
    const Field& f = op.fields()[i];
    const bool may_be = f.required || f.name == "batch" || f.name == "batches";
    if (may_be && f.kind == FieldKind::integer && !chosen.contains(f.name)) {
      sizes.push_back(i);
    }
  }
  return sizes;
}

/// number = product of unknown sizes.
struct Equation {
  std::int64_t number = 0;
  Product product;
  std::string text;  ///< "a has 128 rows"
};

class Fitter {
 public:
  Fitter(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen, std::span<const TensorShape> shapes)
      : op_(op),
        mode_(mode),
        chosen_(chosen),
        shapes_(shapes),
        fields_(op.fields()),
        probe_(op, mode, size_fields(op, chosen)) {
    for (const Field& field : fields_) {
      const auto found = chosen.find(field.name);
      params_.push_back(found == chosen.end() ? field.fallback : found->second);
    }
  }

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

  static bool is_constant(const std::optional<Product>& product) {
    return product.has_value() && product->is_constant();
  }

  /// Whether matrices have a dimension of their own in every tensor whose port has several.
  [[nodiscard]] bool matrices_are_apart() const {
    return std::ranges::all_of(shapes_, [&](const TensorShape& shape) {
      const auto dims = probe_.dims_of(params_, shape.port);
      return !dims.has_value() || is_constant(dims->batch) || shape.dims.size() > 2;
    });
  }

  void add_equations(const TensorShape& shape, const Dims& dims, bool apart, std::vector<Equation>& equations) const {
    std::vector<std::int64_t> sizes = shape.dims;
    const bool is_column = is_constant(dims.cols) && dims.cols->constant == 1;
    std::int64_t cols = 1;
    if (!sizes.empty() && !(is_column && (sizes.size() == 1 || sizes.back() != 1))) {
      cols = sizes.back();
      sizes.pop_back();
    }
    const bool has_batch = !is_constant(dims.batch);
    std::int64_t batch = 1;
    if (has_batch && apart && sizes.size() >= 2) {
      for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
        batch = times(batch, sizes[i]);
      }
      sizes.erase(sizes.begin(), sizes.end() - 1);
    }
    std::int64_t rows = 1;
    for (const std::int64_t size : sizes) {
      rows = times(rows, size);
    }
    const auto add = [&](std::int64_t number, const std::optional<Product>& product, std::string_view what) {
      if (product.has_value()) {
        equations.push_back({number, *product, fmt::format("{} has {} {}", shape.port, number, what)});
      }
    };
    add(cols, dims.cols, "columns");
    if (has_batch && apart) {
      add(batch, dims.batch, "matrices");
      add(rows, dims.rows, "rows");
    } else if (dims.batch.has_value() && dims.rows.has_value()) {
      add(times(rows, batch), *dims.rows * *dims.batch, "rows");
    }
  }

  void solve() {
    std::vector<Equation> equations;
    const bool apart = matrices_are_apart();
    for (const TensorShape& shape : shapes_) {
      if (const auto dims = probe_.dims_of(params_, shape.port); dims.has_value()) {
        add_equations(shape, *dims, apart, equations);
      }
    }
    const std::vector<std::size_t>& sizes = probe_.sizes();
    std::vector<std::optional<std::int64_t>> known(sizes.size());
    std::vector<std::string> because(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      // Folded into rows, matrices cannot be told from them.
      if (!apart && !fields_[sizes[i]].required) {
        known[i] = std::get<std::int64_t>(fields_[sizes[i]].fallback);
      }
    }
    bool found = true;
    while (found) {
      found = false;
      for (const Equation& equation : equations) {
        found = solve_one(equation, sizes, known, because) || found;
        if (!fit_.mistakes.empty()) {
          return;
        }
      }
    }
    take(sizes, known);
    if (fit_.mistakes.empty()) {
      check_shapes();
    }
  }

  /// True if the equation tells a size that was not known.
  bool solve_one(const Equation& equation, const std::vector<std::size_t>& sizes,
                 std::vector<std::optional<std::int64_t>>& known, std::vector<std::string>& because) {
    std::int64_t product = equation.product.constant;
    std::optional<std::size_t> unknown;
    std::string known_from;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (int power = 0; power < equation.product.powers[i]; ++power) {
        if (known[i].has_value()) {
          product = times(product, *known[i]);
          known_from = because[i].empty() ? known_from : because[i];
        } else if (unknown.has_value()) {
          return false;
        } else {
          unknown = i;
        }
      }
    }
    if (!unknown.has_value()) {
      if (product != equation.number) {
        fit_.mistakes.push_back(known_from.empty() ? fmt::format("{}, where {} has {}{}", equation.text, op_.name,
                                                                 product, taken_for_granted(equation, sizes))
                                                   : fmt::format("{}, but {}", equation.text, known_from));
      }
      return false;
    }
    if (product == 0 || equation.number % product != 0) {
      fit_.mistakes.push_back(fmt::format("{}, which is not a multiple of {}", equation.text, product));
      return false;
    }
    known[*unknown] = equation.number / product;
    because[*unknown] =
        fmt::format("{} = {} because {}", fields_[sizes[*unknown]].name, *known[*unknown], equation.text);
    return true;
  }

  /// " (batches = 1, heads = 1, unless --param says otherwise)", of sizes that no tensor tells; empty if there are none.
  [[nodiscard]] std::string taken_for_granted(const Equation& equation, const std::vector<std::size_t>& sizes) const {
    std::string text;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Field& field = fields_[sizes[i]];
      if (equation.product.powers[i] > 0 && !field.required && !is_chosen(sizes[i])) {
        text += fmt::format("{} = {}, ", field.name, op::value_text(field.fallback));
      }
    }
    return text.empty() ? text : fmt::format(" ({}unless --param says otherwise)", text);
  }

  void take(const std::vector<std::size_t>& sizes, const std::vector<std::optional<std::int64_t>>& known) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Field& field = fields_[sizes[i]];
      if (known[i].has_value() && is_within(field, *known[i])) {
        params_[sizes[i]] = *known[i];
      } else if (known[i].has_value()) {
        fit_.mistakes.push_back(fmt::format("{} = {} follows from the shapes, and it is from {} to {}", field.name,
                                            *known[i], field.minimum, field.maximum));
      } else if (field.required) {
        fit_.mistakes.push_back(
            fmt::format("no tensor tells {} ({}): give it with --param {}=N", field.name, field.doc, field.name));
      } else {
        params_[sizes[i]] = field.fallback;
      }
    }
  }

  static bool is_within(const Field& field, std::int64_t value) {
    return static_cast<double>(value) >= field.minimum && static_cast<double>(value) <= field.maximum;
  }

  /// What the equations did not say.
  void check_shapes() {
    fit_.mistakes = op_.check(params_, mode_);
    if (!fit_.mistakes.empty()) {
      return;
    }
    const std::vector<op::Port> ports = op_.ports(params_, mode_);
    for (const TensorShape& shape : shapes_) {
      const op::Port* port = op::find_port(ports, shape.port);
      if (port != nullptr && port->elements() != shape.elements()) {
        fit_.mistakes.push_back(fmt::format("{} is {} ({} elements), where {} has {} x {} x {}", shape.port,
                                            fmt::join(shape.dims, " x "), shape.elements(), op_.name, port->batch,
                                            port->rows, port->cols));
      }
    }
  }

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

std::int64_t TensorShape::elements() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    count = times(count, dim);
  }
  return count;
}

bool may_have_port(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen, std::string_view name) {
  return Fitter(op, mode, chosen, {}).may_have(name);
}

Fit fit_params(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen,
               std::span<const TensorShape> shapes) {
  return Fitter(op, mode, chosen, shapes).fit();
}

}  // namespace numcheck::diagnose
