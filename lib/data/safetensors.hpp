// Tensors in a file that other tools read: the safetensors format (8 bytes of header length, a JSON header with names,
// formats, shapes and offsets, then raw bytes, little-endian; github.com/huggingface/safetensors, README "Format").
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "op/op.hpp"

namespace numcheck::data {

/// A tensor to be written: dense, row-major.
struct StoredTensor {
  std::string name;
  std::string format;  ///< as in the file: "BF16", "F8_E4M3", ...
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// The elements of a port without padding, copied to `scratch` if the image has any. Shape: batch (unless one), rows,
/// columns.
[[nodiscard]] StoredTensor dense_tensor(const op::Port& port, std::span<const std::byte> image,
                                        std::vector<std::byte>& scratch);

/// Writes the tensors, in this order, with texts about them, as a core::NewFile. Throws core::IoError that names the
/// file, which then does not exist.
void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& texts);

}  // namespace numcheck::data
