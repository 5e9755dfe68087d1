// The names that tensor files give to number formats.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.hpp"
#include "data/tensor_file.hpp"

namespace numcheck::data {

/// A format of a file.
struct FileFormat {
  std::string_view name;
  std::uint64_t bits = 0;  ///< of an element
  ElementKind kind = ElementKind::raw;
  std::optional<core::Dtype> dtype;  ///< ours; nothing if we have none
};

/// All formats of safetensors 0.8 (its tensor.rs, enum Dtype).
[[nodiscard]] std::span<const FileFormat> safetensors_formats() noexcept;
/// Null if there is none of that name.
[[nodiscard]] const FileFormat* find_safetensors_format(std::string_view name) noexcept;

/// The name that our writer gives to a format; E8M0 scales and FP4 codes, one per byte, are "U8".
[[nodiscard]] std::string safetensors_format(core::Dtype dtype);

/// What a type description of an .npy says.
struct NpyFormat {
  enum class Trouble : std::uint8_t { none, unknown, objects, text, dates, big_endian } trouble = Trouble::none;
  FileFormat format;  ///< without a name
};
/// Of "<f4", "|V2", "bfloat16", ...
[[nodiscard]] NpyFormat npy_format(std::string_view description) noexcept;

}  // namespace numcheck::data
