#include "core/file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/strings.hpp"

namespace numcheck::core {
namespace {

namespace fs = std::filesystem;

constexpr int kAttempts = 100;  // to find an unused name; only broken random numbers need a second one
constexpr std::size_t kBlock = std::size_t{1} << 16;

std::string reason(int error) {
  return std::generic_category().message(error);
}

IoError cannot_write(const fs::path& path, int error) {
  return IoError(fmt::format("cannot write {}: {}", path.string(), reason(error)));
}

/// What something other than a regular file is, in words; empty for a regular file.
std::string_view kind_of(mode_t mode) noexcept {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "";
    case S_IFDIR:
      return "it is a folder";
    case S_IFIFO:
      return "it is a pipe, not a regular file";
    case S_IFSOCK:
      return "it is a socket, not a regular file";
    default:
      return "it is a device, not a regular file";
  }
}

std::string too_large(std::uint64_t bytes, std::uint64_t max_bytes) {
  return fmt::format("it is larger than {}: it has {}", human_bytes(max_bytes), human_bytes(bytes));
}

/// File systems whose files the kernel makes up: sizes are zero, contents are the state of processes and devices.
bool is_made_up(int file) noexcept {
  static constexpr std::array<std::uint32_t, 9> kMagic = {
      PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC,  TRACEFS_MAGIC, SECURITYFS_MAGIC,
      CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BINFMTFS_MAGIC, 0x62656570 /* configfs */};
  struct statfs facts{};
  return ::fstatfs(file, &facts) == 0 &&
         std::ranges::find(kMagic, static_cast<std::uint32_t>(facts.f_type)) != kMagic.end();
}

void write_all(int file, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    const ssize_t step = ::write(file, content.data(), content.size());
    if (step < 0 && errno == EINTR) {
      continue;
    }
    if (step < 0) {
      throw cannot_write(path, errno);
    }
    content.remove_prefix(static_cast<std::size_t>(step));
  }
}

/// Not derived from the target's name, which may already have the maximum length.
fs::path temporary_name(const fs::path& folder) {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    throw IoError("cannot get random bytes: " + reason(errno));
  }
  return folder / fmt::format(".te-numcheck-{:016x}.tmp", number);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// What linkat gives a name to.
std::string name_of_open_file(const FileDescriptor& file) {
  return fmt::format("/proc/self/fd/{}", file.get());
}

/// A file in the folder that is gone with this process, however that ends; not every file system has such files.
FileDescriptor open_without_name(const fs::path& folder) {
  FileDescriptor file(::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666));
  const bool can_be_named = file.valid() && ::access(name_of_open_file(file).c_str(), F_OK) == 0;
  return can_be_named ? std::move(file) : FileDescriptor();
}

/// So that the new name survives a crash of the machine. Not every file system supports this, and the content is
/// already safe.
void sync_folder(const fs::path& folder) noexcept {
  const FileDescriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.valid()) {
    (void)::fsync(file.get());
  }
}

/// A device or a pipe, opened for writing. A named pipe that nobody reads would block us forever.
FileDescriptor open_special(const std::filesystem::path& path) {
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
  constexpr auto kPatience = std::chrono::seconds(3);
  constexpr auto kPoll = std::chrono::milliseconds(20);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  FileDescriptor file(::open(path.c_str(), kFlags | O_NONBLOCK));
  while (!file.valid() && errno == ENXIO && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPoll);
    file = FileDescriptor(::open(path.c_str(), kFlags | O_NONBLOCK));
  }
  if (!file.valid()) {
    const int reason = errno;
    throw reason == ENXIO ? IoError(fmt::format("cannot write {}: nobody reads it", path.string()))
                          : cannot_write(path, reason);
  }
  ::fcntl(file.get(), F_SETFL, kFlags);
  return file;
}

}  // namespace

OpenFile open_regular_file(const fs::path& path, std::uint64_t max_bytes) {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) {
    return {{}, 0, errno == ENOENT ? "no such file" : reason(errno)};
  }
  if (const std::string_view kind = kind_of(facts.st_mode); !kind.empty()) {
    return {{}, 0, std::string(kind)};  // not even opened: opening has side effects on some devices
  }
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid() || ::fstat(file.get(), &facts) != 0) {
    return {{}, 0, reason(errno)};
  }
  if (const std::string_view kind = kind_of(facts.st_mode); !kind.empty()) {  // replaced since the check above
    return {{}, 0, std::string(kind)};
  }
  if (is_made_up(file.get())) {
    return {{}, 0, "it shows the state of the system (/proc, /sys) and is not a file on disk"};
  }
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  return bytes > max_bytes ? OpenFile{{}, bytes, too_large(bytes, max_bytes)} : OpenFile{std::move(file), bytes, {}};
}

FileText read_regular_file(const fs::path& path, std::uint64_t max_bytes) {
  const OpenFile opened = open_regular_file(path, max_bytes);
  if (!opened.problem.empty()) {
    return {{}, opened.problem};
  }
  FileText content;
  content.text.resize(static_cast<std::size_t>(opened.bytes) + 1);  // one more, to see the end without growing
  for (std::size_t size = 0;;) {
    const ssize_t step = ::read(opened.file.get(), content.text.data() + size, content.text.size() - size);
    if (step < 0 && errno != EINTR) {
      return {{}, reason(errno)};
    }
    size += step > 0 ? static_cast<std::size_t>(step) : 0;
    if (size > max_bytes) {  // it is growing while we read
      return {{}, too_large(size, max_bytes)};
    }
    if (step == 0) {
      content.text.resize(size);
      return content;
    }
    if (size == content.text.size()) {
      content.text.resize(size + kBlock);
    }
  }
}

std::string read_at(const FileDescriptor& file, const std::string& name, std::uint64_t begin, std::size_t size) {
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t step = ::pread(file.get(), text.data() + done, size - done, static_cast<off_t>(begin + done));
    if (step < 0 && errno == EINTR) {
      continue;
    }
    if (step < 0) {
      throw IoError(fmt::format("cannot read {}: {}", name, reason(errno)));
    }
    if (step == 0) {
      break;
    }
    done += static_cast<std::size_t>(step);
  }
  text.resize(done);
  return text;
}

std::optional<FileIdentity> identity_of_file(const fs::path& path) noexcept {
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return std::nullopt;
  }
  return FileIdentity{facts.st_dev, facts.st_ino};
}

fs::path resolved_path(const fs::path& path) {
  std::error_code failure;
  // A path from the root: otherwise one whose first folder does not exist would stay relative.
  const fs::path whole = fs::absolute(path.empty() ? fs::path(".") : path, failure);
  fs::path result = fs::weakly_canonical(whole, failure);
  return failure ? whole.lexically_normal() : result;
}

bool is_inside(const fs::path& folder, const fs::path& file) {
  const fs::path outer = resolved_path(folder), inner = resolved_path(file);
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

template <class Create>
void NewFile::name_it(const Create& create) {
  int error = EEXIST;
  for (int attempt = 0; attempt < kAttempts && error == EEXIST; ++attempt) {
    fs::path name = temporary_name(folder_of(target_));
    error = create(name.c_str()) ? 0 : errno;
    if (error == 0) {
      temporary_ = std::move(name);
    }
  }
  if (error != 0) {
    throw cannot_write(target_, error);
  }
}

NewFile::NewFile(fs::path target) : target_(std::move(target)) {
  struct stat there{};
  if (::lstat(target_.c_str(), &there) != 0 && errno != ENOENT) {
    throw cannot_write(target_, errno);  // for example a name that is too long; the temporary one is short
  }
  file_ = open_without_name(folder_of(target_));
  if (!file_.valid()) {
    name_it([this](const char* name) {
      file_ = FileDescriptor(::open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
      return file_.valid();
    });
  }
}

NewFile::~NewFile() {
  if (file_.valid() && !temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void NewFile::write(std::string_view text) {
  write_all(file_.get(), text, target_);
}

void NewFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void NewFile::publish() {
  // EINVAL, EROFS: the file system does not support it, which is not a failure of this file.
  if (::fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) {
    throw cannot_write(target_, errno);
  }
  if (temporary_.empty()) {
    const std::string open_file = name_of_open_file(file_);
    name_it([&open_file](const char* name) {
      return ::linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    });
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    throw cannot_write(target_, errno);
  }
  file_.reset();
  sync_folder(folder_of(target_));
}

fs::path written_path(const fs::path& given) {
  constexpr int kMaxLinks = 40;
  std::error_code failure;
  fs::path path = given;
  for (int links = 0; links < kMaxLinks; ++links) {
    if (!fs::is_symlink(fs::symlink_status(path, failure))) {
      return path;
    }
    path = folder_of(path) / fs::read_symlink(path, failure);
  }
  throw cannot_write(given, ELOOP);
}

void try_new_file(const fs::path& target) {
  const NewFile probe(written_path(target));
}

void write_file(const fs::path& path, const std::function<void(const TakeText&)>& produce) {
  struct stat there{};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)) {
    // A device or a pipe is written to directly: renaming a file onto it would replace it.
    const FileDescriptor file = open_special(path);
    produce([&](std::string_view piece) { write_all(file.get(), piece, path); });
    return;
  }
  NewFile file(written_path(path));
  produce([&](std::string_view piece) { file.write(piece); });
  file.publish();
}

void write_file(const fs::path& path, std::string_view content) {
  write_file(path, [content](const TakeText& take) { take(content); });
}

void append_file(const fs::path& path, std::string_view content) {
  constexpr mode_t kMode = 0666;
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, kMode));
  if (!file.valid()) {
    throw cannot_write(path, errno);
  }
  write_all(file.get(), content, path);
}

}  // namespace numcheck::core
