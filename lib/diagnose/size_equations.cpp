#include "diagnose/size_equations.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace numcheck::diagnose {
namespace {

using op::Field;
using op::Params;

/// Products stop there: sizes of files that lie may be anything.
constexpr std::int64_t kMostElements = std::int64_t{1} << 60;

std::int64_t times(std::int64_t a, std::int64_t b) {
  return b != 0 && a > kMostElements / b ? kMostElements : a * b;
}

/// number = product of unknown sizes.
struct Equation {
  std::int64_t number = 0;
  Product product;
  std::string text;  ///< "a has 128 rows"
};

class Solver {
 public:
  Solver(const SizeQuestion& question, Params& params)
      : op_(question.op),
        mode_(question.mode),
        chosen_(question.chosen),
        shapes_(question.shapes),
        fields_(question.op.fields()),
        probe_(question.probe),
        params_(params) {}

  std::vector<std::string> solve() {
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
        if (!mistakes_.empty()) {
          return mistakes_;
        }
      }
    }
    take(sizes, known);
    if (mistakes_.empty()) {
      check_shapes();
    }
    return mistakes_;
  }

 private:
  [[nodiscard]] bool is_chosen(std::size_t field) const { return chosen_.contains(fields_[field].name); }

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
        mistakes_.push_back(known_from.empty() ? fmt::format("{}, where {} has {}{}", equation.text, op_.name, product,
                                                             taken_for_granted())
                                               : fmt::format("{}, but {}", equation.text, known_from));
      }
      return false;
    }
    if (product == 0 || equation.number % product != 0) {
      mistakes_.push_back(fmt::format("{}, which is not a multiple of {}", equation.text, product));
      return false;
    }
    known[*unknown] = equation.number / product;
    because[*unknown] =
        fmt::format("{} = {} because {}", fields_[sizes[*unknown]].name, *known[*unknown], equation.text);
    return true;
  }

  /// Whether tensors have other sizes with 2 than with 1.
  [[nodiscard]] bool is_size(std::size_t field) const {
    const auto elements = [&](std::int64_t number) {
      Params params = params_;
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        constexpr std::int64_t kAny = 8;
        params[i] =
            fields_[i].required && std::holds_alternative<std::int64_t>(params[i]) ? op::Value(kAny) : params[i];
      }
      params[field] = number;
      std::vector<std::int64_t> all;
      for (const op::Port& port : op_.ports(params, mode_)) {
        all.push_back(port.elements());
      }
      return all;
    };
    return !fields_[field].storage_only && elements(1) != elements(2);
  }

  /// " (batches, heads: 1 unless --param says otherwise)", of sizes that no tensor tells; empty if there are none.
  [[nodiscard]] std::string taken_for_granted() const {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const auto* number = std::get_if<std::int64_t>(&fields_[i].fallback);
      if (number != nullptr && *number == 1 && !fields_[i].required && !is_chosen(i) && is_size(i)) {
        names.push_back(fields_[i].name);
      }
    }
    return names.empty() ? "" : fmt::format(" ({}: 1 unless --param says otherwise)", fmt::join(names, ", "));
  }

  void take(const std::vector<std::size_t>& sizes, const std::vector<std::optional<std::int64_t>>& known) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Field& field = fields_[sizes[i]];
      if (known[i].has_value() && is_within(field, *known[i])) {
        params_[sizes[i]] = *known[i];
      } else if (known[i].has_value()) {
        mistakes_.push_back(fmt::format("{} = {} follows from the shapes, and it is from {} to {}", field.name,
                                        *known[i], field.minimum, field.maximum));
      } else if (field.required) {
        mistakes_.push_back(
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
    mistakes_ = op_.check(params_, mode_);
    if (!mistakes_.empty()) {
      return;
    }
    const std::vector<op::Port> ports = op_.ports(params_, mode_);
    for (const TensorShape& shape : shapes_) {
      const op::Port* port = op::find_port(ports, shape.port);
      if (port != nullptr && port->elements() != shape.elements()) {
        mistakes_.push_back(fmt::format("{} is {} ({} elements), where {} has {} x {} x {}", shape.port,
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
  const ShapeProbe& probe_;
  Params& params_;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::int64_t TensorShape::elements() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    count = times(count, dim);
  }
  return count;
}

std::vector<std::string> solve_sizes(const SizeQuestion& question, Params& params) {
  return Solver(question, params).solve();
}

}  // namespace numcheck::diagnose
