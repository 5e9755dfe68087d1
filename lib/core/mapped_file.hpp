// A file's bytes in memory, without reading those that nobody looks at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "core/file_descriptor.hpp"

namespace numcheck::core {

/// A regular file, mapped read-only. Whoever shortens the file while its bytes are looked at ends this process (SIGBUS);
/// what decides where to look is therefore taken by read(), which fails instead.
class MappedFile {
 public:
  /// Throws IoError "cannot read PATH: reason": no such file, a folder, a pipe, a device.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

  /// A copy of [begin, begin + size), which must lie within the file. Throws IoError, also if it has become shorter.
  [[nodiscard]] std::string read(std::uint64_t begin, std::size_t size) const;

  /// Throws IoError if the file no longer has the size that it had when it was opened.
  void check_size() const;

 private:
  [[nodiscard]] int map() noexcept;  ///< 0 or the error

  std::string name_;
  FileDescriptor file_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace numcheck::core
