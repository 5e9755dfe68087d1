// What the headers of tensor files say: the readers of single formats, which see a file only through a function, so that
// they can be given bytes in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tensor_file.hpp"

namespace numcheck::data {

/// The bytes of a file.
struct FileSource {
  std::string name;  ///< its path
  std::uint64_t size = 0;
  std::function<std::string(std::uint64_t begin, std::size_t size)> read;  ///< of a part that lies within it
};

/// Where a tensor's bytes are, counted from the start of the file; `tensor.bytes` is empty.
struct ListedTensor {
  FileTensor tensor;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

/// All places are within the file, do not overlap, and have the sizes that shape and format ask for.
struct TensorList {
  std::vector<ListedTensor> tensors;  ///< in the order of their data
  std::map<std::string, std::string> texts;
};

/// By content. Throws as TensorFile::open does.
[[nodiscard]] TensorList list_tensors(const FileSource& source);
/// Of a file whose ninth byte is '{'.
[[nodiscard]] TensorList list_safetensors(const FileSource& source);
/// Of a file that begins with kNpyMagic.
[[nodiscard]] TensorList list_npy(const FileSource& source);

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

/// Gives the tensors of a list their bytes in the file.
[[nodiscard]] std::vector<FileTensor> place_tensors(TensorList&& list, std::span<const std::byte> file);

/// Throws UsageError for a file that is sound, but not of a kind that is read. The `start` of it tells which.
[[noreturn]] void refuse_other_kinds(const FileSource& source, std::string_view start);

// What the readers share.

/// IoError "cannot read NAME: problem".
[[noreturn]] void refuse(const FileSource& source, std::string_view problem);
/// UsageError of the same form.
[[noreturn]] void refuse_kind(const FileSource& source, std::string_view problem, std::vector<std::string> notes);

/// A string literal of Python, for lines to paste; a hostile name cannot leave it.
[[nodiscard]] std::string python_string(std::string_view text);

inline constexpr std::size_t kMaxDimensions = 64;  ///< as NumPy has
/// Of the dimensions other than 0, so that the product of any of them fits, too, and so do bits and doubles in 64 bits.
inline constexpr std::int64_t kMaxElements = std::int64_t{1} << 56;

/// The product of the dimensions, none negative; nothing if it is too large, as above.
[[nodiscard]] std::optional<std::int64_t> product_of(std::span<const std::int64_t> shape) noexcept;

/// "3 x 4"; "a single number" for an empty shape.
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace numcheck::data
