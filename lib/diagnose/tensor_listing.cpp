#include "diagnose/tensor_listing.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

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

std::string others_note(const GatherRequest& request) {
  std::vector<TensorShape> others = request.unnamed;
  for (const NamedTensor& named : request.tensors) {
    const auto has = [&](std::string_view mode) {
      return may_have_port(*request.op, *op::find_mode(mode), request.params, named.port);
    };
    if (named.may_be_other && std::ranges::none_of(request.op->modes, has)) {
      others.push_back({named.port, named.tensor.shape});
    }
  }
  return others.empty()
             ? ""
             : fmt::format("the files also hold {}; --map PORT=NAME,... says which of them is which", listing(others));
}

}  // namespace numcheck::diagnose
