// What files hold, for messages to people whose names are not those of ports.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/tensor_file.hpp"
#include "diagnose/fit.hpp"
#include "diagnose/gather.hpp"

namespace numcheck::diagnose {

/// Tensors by their names in the file.
[[nodiscard]] std::vector<TensorShape> shapes_of(std::span<const data::FileTensor> tensors);

/// "x (32 x 16), weight (8 x 16) and 3 more"; "no tensors" if there are none.
[[nodiscard]] std::string listing(std::span<const TensorShape> tensors);

/// What the files hold besides the tensors that ports were found for; empty if there is nothing.
[[nodiscard]] std::string others_note(const GatherRequest& request);

}  // namespace numcheck::diagnose
