#include "diagnose/fit.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plan/reporter.hpp"

namespace numcheck::diagnose {
namespace {

using op::Field;
using op::FieldKind;
using op::Params;

/// Sizes of probes: distinct primes that are large enough to be no constant of an op's shape. Two sets, because a dimension
/// that is no product (a rounded-up quotient) cannot look like the same one in both.
constexpr std::array<std::array<std::int64_t, 8>, 2> kPrimes = {
    {{1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049}, {2003, 2011, 2017, 2027, 2029, 2039, 2053, 2063}}};

/// constant * product of sizes ^ power.
struct Product {
  std::int64_t constant = 1;
  std::vector<int> powers;  ///< parallel to the sizes

  bool operator==(const Product&) const = default;
};

/// What a port's dimensions are made of; nothing where one is no product.
struct Dims {
  std::optional<Product> batch, rows, cols;
};

Product factors_of(std::int64_t number, std::span<const std::int64_t> primes) {
  Product product;
  for (const std::int64_t prime : primes) {
    int power = 0;
    while (number != 0 && number % prime == 0) {
      number /= prime;
      ++power;
    }
    product.powers.push_back(power);
  }
  product.constant = number;
  return product;
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
      : op_(op), mode_(mode), chosen_(chosen), shapes_(shapes), fields_(op.fields()) {
    for (const Field& field : fields_) {
      const auto found = chosen.find(field.name);
      params_.push_back(found == chosen.end() ? field.fallback : found->second);
    }
  }

  [[nodiscard]] bool may_have(std::string_view port) { return has_port(params_, port) || turn_on(port); }

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

  /// Parameters whose sizes are large enough for ports to exist.
  [[nodiscard]] Params sized(Params params, std::size_t set) const {
    std::size_t next = 0;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (is_size(i)) {
        params[i] = kPrimes[set][next++ % kPrimes[set].size()];
      }
    }
    return params;
  }

  /// A size that shapes may tell: an integer that must be chosen, or the number of matrices.
  [[nodiscard]] bool is_size(std::size_t field) const {
    const Field& f = fields_[field];
    return f.kind == FieldKind::integer && !is_chosen(field) &&
           (f.required || f.name == "batch" || f.name == "batches");
  }

  [[nodiscard]] std::optional<std::vector<op::Port>> ports_with(const Params& params) const {
    if (!op_.check(params, mode_).empty()) {
      return std::nullopt;
    }
    return op_.ports(params, mode_);
  }

  [[nodiscard]] bool has_port(const Params& params, std::string_view name) const {
    const auto ports = ports_with(sized(params, 0));
    return ports.has_value() && op::find_port(*ports, name) != nullptr;
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
      if (has_port(params_, shape.port) || turn_on(shape.port)) {
        continue;
      }
      std::vector<std::string_view> names;
      if (const auto ports = ports_with(sized(params_, 0)); ports.has_value()) {
        for (const op::Port& port : *ports) {
          names.push_back(port.name);
        }
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
        if (has_port(turned, port)) {
          params_ = std::move(turned);
          note(i);
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
      if (fields_[i].kind == FieldKind::boolean && !is_chosen(i) && exchanges_dims(i)) {
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

  [[nodiscard]] bool exchanges_dims(std::size_t field) const {
    Params turned = params_;
    turned[field] = !std::get<bool>(turned[field]);
    const auto before = ports_with(sized(params_, 0));
    const auto after = ports_with(sized(turned, 0));
    return before.has_value() && after.has_value() && before->size() == after->size() &&
           std::ranges::any_of(*before, [&](const op::Port& port) {
             const op::Port* other = op::find_port(*after, port.name);
             return other != nullptr && port.rows != port.cols && other->rows == port.cols && other->cols == port.rows;
           });
  }

  /// What the port's dimensions are made of; nothing if the op has no such port for sizes at random.
  [[nodiscard]] std::optional<Dims> dims_of(std::string_view name) const {
    std::array<Dims, 2> found;
    for (std::size_t set = 0; set < found.size(); ++set) {
      const auto ports = ports_with(sized(params_, set));
      const op::Port* port = ports.has_value() ? op::find_port(*ports, name) : nullptr;
      if (port == nullptr) {
        return std::nullopt;
      }
      std::vector<std::int64_t> primes;
      for (std::size_t i = 0; i < fields_.size(); ++i) {
        if (is_size(i)) {
          primes.push_back(kPrimes[set][primes.size() % kPrimes[set].size()]);
        }
      }
      found[set] = {factors_of(port->batch, primes), factors_of(port->rows, primes), factors_of(port->cols, primes)};
    }
    const auto keep = [](std::optional<Product>& first, const std::optional<Product>& second) {
      if (first != second) {
        first.reset();
      }
    };
    keep(found[0].batch, found[1].batch);
    keep(found[0].rows, found[1].rows);
    keep(found[0].cols, found[1].cols);
    return found[0];
  }

  static bool is_constant(const std::optional<Product>& product) {
    return product.has_value() && std::ranges::all_of(product->powers, [](int power) { return power == 0; });
  }

  /// Whether matrices have a dimension of their own in every tensor whose port has several.
  [[nodiscard]] bool matrices_are_apart() const {
    return std::ranges::all_of(shapes_, [&](const TensorShape& shape) {
      const auto dims = dims_of(shape.port);
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
        batch *= sizes[i];
      }
      sizes.erase(sizes.begin(), sizes.end() - 1);
    }
    std::int64_t rows = 1;
    for (const std::int64_t size : sizes) {
      rows *= size;
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
      Product both = *dims.rows;
      both.constant *= dims.batch->constant;
      for (std::size_t i = 0; i < both.powers.size(); ++i) {
        both.powers[i] += dims.batch->powers[i];
      }
      add(rows * batch, both, "rows");
    }
  }

  void solve() {
    std::vector<Equation> equations;
    const bool apart = matrices_are_apart();
    for (const TensorShape& shape : shapes_) {
      if (const auto dims = dims_of(shape.port); dims.has_value()) {
        add_equations(shape, *dims, apart, equations);
      }
    }
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (is_size(i)) {
        sizes.push_back(i);
      }
    }
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
          product *= *known[i];
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
        fit_.mistakes.push_back(known_from.empty()
                                    ? fmt::format("{}, where {} has {}", equation.text, op_.name, product)
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

  void take(const std::vector<std::size_t>& sizes, const std::vector<std::optional<std::int64_t>>& known) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const Field& field = fields_[sizes[i]];
      if (known[i].has_value()) {
        params_[sizes[i]] = *known[i];
      } else if (field.required) {
        fit_.mistakes.push_back(
            fmt::format("no tensor tells {} ({}): give it with --param {}=N", field.name, field.doc, field.name));
      } else {
        params_[sizes[i]] = field.fallback;
      }
    }
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
  Params params_;
  Fit fit_;
};

}  // namespace

std::int64_t TensorShape::elements() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    count *= dim;
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
