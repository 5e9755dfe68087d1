// Files that are read whole, within a limit, and files that are written whole or not at all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/file_descriptor.hpp"

namespace numcheck::core {

/// Content of a file, or why there is none.
struct FileText {
  std::string text;
  std::string problem;  ///< "no such file", "it is a pipe, no regular file", ...; empty if there is a text
};

/// Reads a regular file of at most `max_bytes`. Anything else is a problem, told without waiting for a writer and
/// without reading on for ever: pipes, devices, folders, and what the kernel makes up (/proc, /sys), whose content is
/// nobody's file.
[[nodiscard]] FileText read_regular_file(const std::filesystem::path& path, std::uint64_t max_bytes);

/// What a path leads to: two paths of one file are equal in it, whatever links lie between.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Nothing if there is no regular file.
[[nodiscard]] std::optional<FileIdentity> identity_of_file(const std::filesystem::path& path) noexcept;

/// A file in the making: a temporary file beside the target, under a name that nobody can guess, which takes the
/// target's place at the end. Its mode is what the umask leaves of 0666. Without publish() nothing is left of it.
/// Throws IoError "cannot write TARGET: reason".
class NewFile {
 public:
  explicit NewFile(std::filesystem::path target);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Brings it to the disk and gives it its name. A link that has the name is replaced, not followed.
  void publish();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
};

/// Whether the target could be written now: makes and removes the temporary file. Throws IoError as NewFile.
void try_new_file(const std::filesystem::path& target);

/// Writes a NewFile; what is no regular file (a device, a pipe) is written to as it is. Throws IoError.
void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace numcheck::core
