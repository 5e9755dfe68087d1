#include "diagnose/size_factor.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "op/op.hpp"

namespace numcheck::diagnose {

std::optional<SizeFactor> factor_of_sizes(const plan::Case& c, double factor) {
  struct Size {
    std::string name;
    double number = 0;
  };
  std::vector<Size> sizes;
  for (std::size_t i = 0; i < c.params.size(); ++i) {
    const op::Field& field = c.op->fields()[i];
    const auto* size = std::get_if<std::int64_t>(&c.params[i]);
    if (size != nullptr && *size > 1 && !field.storage_only && (field.required || field.name.starts_with("batch"))) {
      sizes.push_back({std::string(field.name), static_cast<double>(*size)});
    }
  }
  for (std::size_t i = 0, count = sizes.size(); i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      sizes.push_back({sizes[i].name + " " + sizes[j].name, sizes[i].number * sizes[j].number});
    }
  }
  constexpr double kNear = 1e-4;
  std::optional<SizeFactor> found;
  for (const Size& size : sizes) {
    for (const auto& [number, text] : {std::pair{1 / size.number, "1 / ({})"},
                                       {size.number, "{}"},
                                       {1 / std::sqrt(size.number), "1 / sqrt({})"},
                                       {std::sqrt(size.number), "sqrt({})"}}) {
      if (std::abs(std::abs(factor) / number - 1) < kNear) {
        const std::string another = fmt::format(fmt::runtime(text), size.name);
        found = {std::copysign(number, factor), found.has_value() ? found->text + " or " + another : another};
      }
    }
  }
  return found;
}

}  // namespace numcheck::diagnose
