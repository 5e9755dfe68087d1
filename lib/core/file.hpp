// Files that are read whole, within a limit, and files that are written whole or not at all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/file_descriptor.hpp"

namespace numcheck::core {

/// Content of a file, or why there is none.
struct FileText {
  std::string text;
  std::string problem;  ///< "no such file", "it is a pipe, not a regular file", ...; empty if there is a text
};

/// Reads a regular file of at most `max_bytes`. Anything else is a problem, reported without waiting for a writer and
/// without reading forever: pipes, devices, folders, and what the kernel makes up (/proc, /sys).
[[nodiscard]] FileText read_regular_file(const std::filesystem::path& path, std::uint64_t max_bytes);

/// A file to read, or why there is none.
struct OpenFile {
  FileDescriptor file;
  std::uint64_t bytes = 0;
  std::string problem;  ///< as of FileText
};

/// Opens what read_regular_file would read.
[[nodiscard]] OpenFile open_regular_file(const std::filesystem::path& path, std::uint64_t max_bytes);

/// What is there of [begin, begin + size). Throws IoError "cannot read NAME: reason".
[[nodiscard]] std::string read_at(const FileDescriptor& file, const std::string& name, std::uint64_t begin,
                                  std::size_t size);

/// What a path leads to: equal for two paths to the same file, whatever links lie between.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};
/// Nothing if there is no regular file.
[[nodiscard]] std::optional<FileIdentity> identity_of_file(const std::filesystem::path& path) noexcept;

/// The path from the root, links resolved as far as it exists; its end need not exist.
[[nodiscard]] std::filesystem::path resolved_path(const std::filesystem::path& path);

/// Whether a file is in a folder or below, wherever links lead; neither need exist.
[[nodiscard]] bool is_inside(const std::filesystem::path& folder, const std::filesystem::path& file);

/// A file being written: a temporary file next to the target, which replaces the target at the end. Where the file system
/// can, it has no name until then, so that nothing is left even of a process that is killed; otherwise an unguessable one.
/// Its mode is 0666 minus the umask. Without publish() nothing is left of it.
/// Throws IoError "cannot write TARGET: reason".
class NewFile {
 public:
  explicit NewFile(std::filesystem::path target);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Flushes it to disk and renames it to the target. A link of that name is replaced, not followed.
  void publish();

 private:
  /// Tries unused names; `create` says whether it created the file, or leaves errno.
  template <class Create>
  void name_it(const Create& create);

  std::filesystem::path target_;
  std::filesystem::path temporary_;  ///< empty: the file has no name yet
  FileDescriptor file_;
};

/// The file that write_file writes: what a link leads to, which need not exist. Throws IoError if links lead in a circle.
[[nodiscard]] std::filesystem::path written_path(const std::filesystem::path& given);

/// Checks that write_file could write it now: creates and removes the temporary file. Throws IoError like NewFile.
void try_new_file(const std::filesystem::path& target);

/// Writes a NewFile; a link stays, and what it leads to is replaced. Anything but a regular file (a device, a pipe) is
/// written to directly. Throws IoError.
void write_file(const std::filesystem::path& path, std::string_view content);
/// The same with content that `produce` passes on piece by piece.
using TakeText = std::function<void(std::string_view)>;
void write_file(const std::filesystem::path& path, const std::function<void(const TakeText&)>& produce);

/// Adds to the end of a file, which is created if there is none. Throws IoError.
void append_file(const std::filesystem::path& path, std::string_view content);

}  // namespace numcheck::core
