// Tensors in a file of somebody else: safetensors (github.com/huggingface/safetensors, README "Format") and NumPy's .npy
// (NumPy's NEP 1 and numpy/lib/format.py), versions 1 to 3. Files are taken for hostile: nothing that a header says is
// believed before it has been checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "core/dtype.hpp"
#include "core/mapped_file.hpp"

namespace numcheck::data {

/// What the elements are, whether or not we have a format for them.
enum class ElementKind : std::uint8_t {
  floating,
  signed_integer,
  unsigned_integer,
  boolean,  ///< a byte; any but zero is true
  complex,
  raw,  ///< NumPy's void types: bf16 and FP8 arrays are saved so
};

/// A tensor of a file, whose elements are little-endian there.
struct FileTensor {
  std::string name;    ///< as in the file; of an .npy: the file's name without its extension
  std::string format;  ///< as the file spells it: "BF16", "<f4", "|V2"
  ElementKind kind = ElementKind::raw;
  std::uint64_t element_bits = 0;    ///< 4 and 6 if elements share bytes (F4, F6_E2M3 of safetensors)
  std::optional<core::Dtype> dtype;  ///< of ours; nothing if we have none for it (I64, BOOL, "|V2")
  std::vector<std::int64_t> shape;   ///< empty: a single number
  bool column_major = false;         ///< Fortran order; false where the order makes no difference
  std::span<const std::byte> bytes;  ///< in the mapped file, at any alignment

  /// The product of the shape, which is below 2^56.
  [[nodiscard]] std::size_t elements() const noexcept;
};

/// A file of tensors, mapped into memory read-only: opening it reads the header alone.
class TensorFile {
 public:
  /// Tells the format by content, not by name. Throws, with a message that names the file and says what is wrong:
  /// IoError if it cannot be read, breaks its format's rules or is incomplete; UsageError, with notes that say how to
  /// convert it, if it is sound but of a kind that is not read (pickles, .npz, objects, big-endian numbers, ...).
  [[nodiscard]] static TensorFile open(const std::filesystem::path& path);

  /// In the order of their data.
  [[nodiscard]] std::span<const FileTensor> tensors() const noexcept { return tensors_; }
  /// Null if there is none of that name.
  [[nodiscard]] const FileTensor* find(std::string_view name) const noexcept;
  /// The texts about the file: __metadata__ of safetensors.
  [[nodiscard]] const std::map<std::string, std::string>& texts() const noexcept { return texts_; }

 private:
  explicit TensorFile(core::MappedFile file) : file_(std::move(file)) {}

  core::MappedFile file_;
  std::vector<FileTensor> tensors_;
  std::map<std::string, std::string> texts_;
};

/// The same elements taken for codes of another format of equal size: raw ones, or an .npy of uint16 that holds bf16.
/// Throws UsageError if the sizes differ.
[[nodiscard]] FileTensor read_as(FileTensor tensor, core::Dtype dtype);

/// The elements as numbers, row-major whatever their order in the file. 64-bit integers beyond 2^53 are rounded; true is 1.
/// Throws UsageError if they are not numbers that we can read (raw, complex, packed), naming the tensor.
[[nodiscard]] core::Buffer<double> values_of(const FileTensor& tensor);

/// The elements' bytes, row-major and dense.
[[nodiscard]] std::vector<std::byte> dense_bytes(const FileTensor& tensor);

}  // namespace numcheck::data
