#include "kernels/transformer_engine/needed.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <optional>

namespace numcheck::kernels::transformer_engine {
namespace {

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : stream_(file, std::ios::binary) {}

  /// The object at a file offset; nothing beyond the end.
  template <class T>
  std::optional<T> at(std::uint64_t offset) {
    T value;
    stream_.clear();
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(reinterpret_cast<char*>(&value), sizeof value);
    return stream_ ? std::optional<T>(value) : std::nullopt;
  }

  std::string text_at(std::uint64_t offset) {
    stream_.clear();
    stream_.seekg(static_cast<std::streamoff>(offset));
    std::string text;
    std::getline(stream_, text, '\0');
    return text;
  }

 private:
  std::ifstream stream_;
};

bool is_elf64(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_phentsize == sizeof(Elf64_Phdr);
}

/// File offset of an address of the loaded image.
std::optional<std::uint64_t> offset_of(const std::vector<Elf64_Phdr>& segments, std::uint64_t address) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
      return address - segment.p_vaddr + segment.p_offset;
    }
  }
  return std::nullopt;
}

std::vector<Elf64_Dyn> dynamic_entries(Reader& reader, const std::vector<Elf64_Phdr>& segments) {
  std::vector<Elf64_Dyn> entries;
  for (const Elf64_Phdr& segment : segments) {
    for (std::uint64_t at = 0; segment.p_type == PT_DYNAMIC && at + sizeof(Elf64_Dyn) <= segment.p_filesz;
         at += sizeof(Elf64_Dyn)) {
      const auto entry = reader.at<Elf64_Dyn>(segment.p_offset + at);
      if (!entry.has_value() || entry->d_tag == DT_NULL) {
        break;
      }
      entries.push_back(*entry);
    }
  }
  return entries;
}

}  // namespace

std::vector<std::string> needed_libraries(const std::filesystem::path& file) {
  Reader reader(file);
  const auto header = reader.at<Elf64_Ehdr>(0);
  if (!header.has_value() || !is_elf64(*header)) {
    return {};
  }
  std::vector<Elf64_Phdr> segments;
  for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
    if (const auto segment = reader.at<Elf64_Phdr>(header->e_phoff + i * sizeof(Elf64_Phdr)); segment.has_value()) {
      segments.push_back(*segment);
    }
  }
  const std::vector<Elf64_Dyn> entries = dynamic_entries(reader, segments);
  std::optional<std::uint64_t> strings;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) {
      strings = offset_of(segments, entry.d_un.d_ptr);
    }
  }
  std::vector<std::string> names;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_NEEDED && strings.has_value()) {
      names.push_back(reader.text_at(*strings + entry.d_un.d_val));
    }
  }
  return names;
}

}  // namespace numcheck::kernels::transformer_engine
