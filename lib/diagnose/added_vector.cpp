#include "diagnose/added_vector.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/strings.hpp"
#include "diagnose/typed_numbers.hpp"

namespace numcheck::diagnose {
namespace {

/// What a vector of an op is called, if the op adds it to its results.
bool is_added(std::string_view port) {
  return port == "bias" || port == "beta";
}

struct GivenVector {
  std::string name;
  prepare::SharedDoubles numbers;
};

/// Vectors that are among the tensors, whether or not the first of two causes leaves them out.
std::vector<GivenVector> given_vectors(const Evidence& evidence) {
  const Subject& subject = evidence.subject;
  const plan::Case& c = subject.declared == nullptr ? subject.c : *subject.declared;
  std::vector<GivenVector> all;
  for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
    const bool is_vector = port.rows == 1 || port.cols == 1;
    if (port.role == op::Role::input && is_vector && must_be_given(port) && subject.inputs.has(port)) {
      all.push_back({std::string(port.name), subject.inputs.of(port)});
    }
  }
  return all;
}

/// " (which is alpha)" of a number that is one of the op's parameters.
std::string parameter_text(const plan::Case& c, double number) {
  for (std::size_t i = 0; i < c.params.size(); ++i) {
    const auto* declared = std::get_if<double>(&c.params[i]);
    if (declared != nullptr && *declared == number) {
      return fmt::format(", which is {}", c.op->fields()[i].name);
    }
  }
  return "";
}

class Relations {
 public:
  Relations(const Evidence& evidence, const GivenVector& vector, std::span<const double> offsets)
      : evidence_(evidence), vector_(vector), given_(vector.numbers->span()), offsets_(offsets) {
    const plan::Case& c = evidence.subject.c;
    const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
    is_expected_ = op::find_port(ports, vector.name) != nullptr;
  }

  std::vector<AddedVector> of_columns(const std::vector<GivenVector>& others) {
    add_multiples();
    for (const GivenVector& other : others) {
      if (other.name != vector_.name && other.numbers->size() == given_.size()) {
        add_product(other);
      }
    }
    add_rolled();
    return std::move(all_);
  }

  /// Nothing of it is expected there.
  std::vector<AddedVector> of_rows() {
    const std::vector<double> all(given_.begin(), given_.end());
    if (near(all)) {
      add(fmt::format("{}_on_rows", vector_.name),
          fmt::format("{} was added along the other axis: its numbers to the rows of {}, not to the columns",
                      vector_.name, evidence_.port),
          "Look at how it is broadcast: of a square result, [n] and [n, 1] both fit.", all);
    }
    return std::move(all_);
  }

 private:
  /// What each line has besides, if these numbers were added for the vector's.
  [[nodiscard]] std::vector<double> besides(std::vector<double> added) const {
    for (std::size_t i = 0; i < added.size(); ++i) {
      added[i] -= is_expected_ ? given_[i] : 0;
    }
    return added;
  }

  /// Whether that is nearly all of the offsets.
  [[nodiscard]] bool near(const std::vector<double>& besides) const {
    constexpr double kLeft = 0.01;
    double left = 0, all = 0;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      left += (offsets_[i] - besides[i]) * (offsets_[i] - besides[i]);
      all += offsets_[i] * offsets_[i];
    }
    return left <= kLeft * all;
  }

  void add(std::string name, std::string cause, std::string remedy, std::vector<double> offsets, int additions = 1) {
    std::vector<double> errors;
    for (std::size_t i = 0; i < offsets.size(); ++i) {  // each addition rounds in FP32
      errors.push_back(additions * 0x1p-24 * (std::abs(offsets[i]) + std::abs(given_[i])));
    }
    all_.push_back({std::move(name), std::move(cause), std::move(remedy), std::move(offsets), std::move(errors)});
  }

  [[nodiscard]] std::vector<double> multiple(double factor) const {
    std::vector<double> numbers;
    for (const double x : given_) {
      numbers.push_back(factor * x);
    }
    return besides(std::move(numbers));
  }

  void add_multiples() {
    double product = 0, square = 0, all = 0;
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      product += offsets_[i] * given_[i];
      square += given_[i] * given_[i];
      all += offsets_[i] * offsets_[i];
    }
    constexpr double kNear = 0.02, kMost = 0.99, kOften = 1024;
    const double factor = product / square + (is_expected_ ? 1 : 0), whole = std::round(factor);
    if (!(product * product >= kMost * square * all)) {
      return;
    }
    const std::string vector = vector_.name == "bias" ? "the bias" : vector_.name;
    if (std::abs(factor - whole) < kNear && whole > 1 && whole < kOften) {
      const int times = static_cast<int>(whole);
      add(fmt::format("{}_added_{}_times", vector_.name, times), fmt::format("{} was added {} times", vector, times),
          "Look for a layer that adds it to what has it already, and for parts of a sum over devices (tensor "
          "parallelism) that each add it: one of them should.",
          multiple(whole), times);
      return;
    }
    const std::vector<double> typed = typed_near(factor);
    for (const double number : typed) {
      if (number != 1 && number != 0) {
        add(fmt::format("{}_scaled={}", vector_.name, core::shortest(number)),
            fmt::format("{} was multiplied by {}{}", vector, core::shortest(number),
                        parameter_text(evidence_.subject.c, number)),
            "Look for a factor of the product that multiplies what is added as well, and for a sign.",
            multiple(number));
        all_.back().is_fitted = typed.size() > 1 && number == typed.back();
      }
    }
  }

  void add_product(const GivenVector& other) {
    std::vector<double> numbers;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      numbers.push_back(given_[i] * (*other.numbers)[i]);
    }
    if (numbers = besides(std::move(numbers)); near(numbers)) {
      add(fmt::format("{}_times_{}", vector_.name, other.name),
          fmt::format("{} was multiplied by {}", vector_.name, other.name),
          fmt::format("{} is added before {} multiplies in one of the two: change the order.", vector_.name,
                      other.name),
          std::move(numbers));
    }
  }

  [[nodiscard]] std::vector<double> rolled(std::size_t by) const {
    std::vector<double> numbers(given_.begin(), given_.end());
    std::ranges::rotate(numbers, numbers.end() - static_cast<std::ptrdiff_t>(by));
    return besides(std::move(numbers));
  }

  /// Whether the first line tells that by itself, so that few vectors are compared as a whole.
  [[nodiscard]] bool may_be_rolled(std::size_t by) const {
    constexpr double kNear = 0.1;
    const double first = given_[(given_.size() - by) % given_.size()] - (is_expected_ ? given_[0] : 0);
    return std::abs(first - offsets_[0]) <= kNear * std::max(std::abs(given_[0]), std::abs(offsets_[0]));
  }

  void add_rolled() {
    constexpr std::size_t kMost = 1U << 14;  // of which every shift is looked at
    const std::size_t size = given_.size();
    for (std::size_t by = 1; by < size && size <= kMost; ++by) {
      if (!may_be_rolled(by)) {
        continue;
      }
      if (std::vector<double> numbers = rolled(by); near(numbers)) {
        const auto [step, side] = 2 * by <= size ? std::pair(by, "after") : std::pair(size - by, "before");
        add(fmt::format("{}_rolled", vector_.name),
            fmt::format("the numbers of {} were added {} column{} {} their own", vector_.name, step,
                        step == 1 ? "" : "s", side),
            "Look for an offset into it that is wrong: of a part of it, of a header, of a slice of another layer's.",
            std::move(numbers));
        return;
      }
    }
  }

  const Evidence& evidence_;
  const GivenVector& vector_;
  std::span<const double> given_, offsets_;
  bool is_expected_ = true;  ///< false: the first of two causes leaves it out
  std::vector<AddedVector> all_;
};

}  // namespace

std::string given_to_add(const Evidence& evidence) {
  for (const GivenVector& vector : given_vectors(evidence)) {
    if (is_added(vector.name)) {
      return vector.name;
    }
  }
  return "";
}

std::vector<AddedVector> misused_vectors(const Evidence& evidence, bool are_columns, std::span<const double> offsets) {
  const std::vector<GivenVector> vectors = given_vectors(evidence);
  std::vector<AddedVector> all;
  for (const GivenVector& vector : vectors) {
    if (is_added(vector.name) && vector.numbers->size() == offsets.size()) {
      Relations relations(evidence, vector, offsets);
      std::ranges::move(are_columns ? relations.of_columns(vectors) : relations.of_rows(), std::back_inserter(all));
    }
  }
  return all;
}

}  // namespace numcheck::diagnose
