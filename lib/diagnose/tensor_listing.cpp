#include "diagnose/tensor_listing.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/printable.hpp"

namespace numcheck::diagnose {

std::vector<TensorShape> shapes_of(std::span<const data::FileTensor> tensors) {
  std::vector<TensorShape> shapes;
  for (const data::FileTensor& tensor : tensors) {
    shapes.push_back({tensor.name, tensor.shape});
  }
  return shapes;
}

std::string listing(std::span<const TensorShape> tensors) {
  constexpr std::size_t kMost = 12;  // files of a training step have hundreds
  std::vector<std::string> texts;
  for (const TensorShape& tensor : tensors.first(std::min(kMost, tensors.size()))) {
    const std::string shape = tensor.dims.empty() ? "one number" : fmt::format("{}", fmt::join(tensor.dims, " x "));
    texts.push_back(fmt::format("{} ({})", core::printable(tensor.port), shape));
  }
  return tensors.empty()
             ? "no tensors"
             : fmt::format("{}{}", fmt::join(texts, ", "),
                           tensors.size() > kMost ? fmt::format(" and {} more", tensors.size() - kMost) : "");
}

}  // namespace numcheck::diagnose
