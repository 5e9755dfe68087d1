// A part of a large product, as a product of its own: what is wrong with it is tried out in a fraction of the time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

/// Some rows of A and columns of B with all of k, and the outputs where they meet: those that have most of the elements marked
/// as wrong, and others evenly spread. Nothing if the subject is not a gemm, or is not larger than that.
[[nodiscard]] std::optional<Subject> cropped(const Subject& subject, std::span<const std::uint8_t> is_wrong);

}  // namespace numcheck::diagnose
