#include "core/mapped_file.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/file.hpp"

namespace numcheck::core {

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  OpenFile opened = open_regular_file(path, std::numeric_limits<std::int64_t>::max());
  if (!opened.problem.empty()) {
    throw IoError(fmt::format("cannot read {}: {}", name_, opened.problem));
  }
  file_ = std::move(opened.file);
  size_ = static_cast<std::size_t>(opened.bytes);
  if (const int error = map(); error != 0) {
    throw IoError(fmt::format("cannot map {} into memory: {}{}", name_, std::generic_category().message(error),
                              error == ENOMEM ? " (see ulimit -v)" : ""));
  }
}

int MappedFile::map() noexcept {
  if (size_ == 0) {
    return 0;  // mmap refuses to map nothing
  }
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, file_.get(), 0);
  if (address == MAP_FAILED) {
    return errno;
  }
  data_ = static_cast<const std::byte*>(address);
  return 0;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);  // NOLINT(cppcoreguidelines-pro-type-const-cast): its signature
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : name_(std::move(other.name_)),
      file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string MappedFile::read(std::uint64_t begin, std::size_t size) const {
  std::string text = read_at(file_, name_, begin, size);
  if (text.size() < size) {
    throw IoError(fmt::format("cannot read {}: it became shorter while it was read", name_));
  }
  return text;
}

void MappedFile::check_size() const {
  struct stat facts{};
  if (::fstat(file_.get(), &facts) != 0 || static_cast<std::size_t>(facts.st_size) != size_) {
    throw IoError(fmt::format("cannot read {}: it is being written; wait until it is complete", name_));
  }
}

}  // namespace numcheck::core
