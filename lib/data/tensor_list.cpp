#include "data/tensor_list.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace numcheck::data {
namespace {

constexpr std::size_t kStart = 512;  // enough to see the name of the first file of a zip archive

std::string python_path(const FileSource& source, std::string_view extension) {
  return python_string(std::filesystem::path(source.name).replace_extension(extension).string());
}

[[noreturn]] void refuse_pickle(const FileSource& source) {
  refuse_kind(source, "it is a pickle, which can run any code when it is read; Python converts it to safetensors:",
              {"import torch, safetensors.torch",
               fmt::format("safetensors.torch.save_file(torch.load({}, map_location=\"cpu\", weights_only=True), {})",
                           python_string(source.name), python_path(source, ".safetensors"))});
}

/// The name of the first file of a zip archive, from its local header (PKWARE APPNOTE 4.3.7); empty if it is cut off.
std::string_view first_name_in_zip(std::string_view start) {
  constexpr std::size_t kLength = 26, kName = 30;
  if (start.size() < kName) {
    return {};
  }
  const std::size_t length =
      static_cast<unsigned char>(start[kLength]) + 256U * static_cast<unsigned char>(start[kLength + 1]);
  return start.substr(kName, length);
}

[[noreturn]] void refuse_zip(const FileSource& source, std::string_view start) {
  const std::string_view name = first_name_in_zip(start);
  if (name.ends_with(".npy")) {
    refuse_kind(source, "it is a zip archive of arrays (.npz); Python converts it to safetensors:",
                {"import numpy, safetensors.numpy",
                 fmt::format("safetensors.numpy.save_file(dict(numpy.load({})), {})", python_string(source.name),
                             python_path(source, ".safetensors"))});
  }
  if (name.ends_with("data.pkl")) {
    refuse_pickle(source);
  }
  refuse_kind(source, "it is a zip archive; unpack it, or save the tensors as safetensors", {});
}

/// Files that people have tensors in, and that are not read.
struct OtherKind {
  std::string_view magic;
  std::string_view problem;
};
constexpr std::array kOthers = std::to_array<OtherKind>({
    {"\x89HDF", "it is an HDF5 file; save its arrays as safetensors or .npy"},
    {"GGUF", "it is a GGUF file; save its tensors as safetensors or .npy"},
    {"\x1f\x8b", "it is compressed (gzip); unpack it"},
    {"\x28\xb5\x2f\xfd", "it is compressed (zstd); unpack it"},
    {"version https://git-lfs", "it is a pointer of Git LFS, not the file itself; git lfs pull gets that"},
});

/// Protocols 2 to 5 begin with their number, and end with a full stop.
bool is_pickle(std::string_view start) {
  return start.size() >= 2 && start[0] == '\x80' && start[1] >= '\x02' && start[1] <= '\x05';
}

}  // namespace

void refuse(const FileSource& source, std::string_view problem) {
  throw core::IoError(fmt::format("cannot read {}: {}", source.name, problem));
}

void refuse_kind(const FileSource& source, std::string_view problem, std::vector<std::string> notes) {
  throw core::UsageError(fmt::format("cannot read {}: {}", source.name, problem), std::move(notes));
}

std::string python_string(std::string_view text) {
  std::string result = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') {
      result += '\\';
    }
    result += each;
  }
  return core::printable(result) + '"';
}

std::optional<std::int64_t> product_of(std::span<const std::int64_t> shape) noexcept {
  std::int64_t bound = 1;
  bool is_empty = false;
  for (const std::int64_t dimension : shape) {
    is_empty = is_empty || dimension == 0;
    if (dimension > kMaxElements / bound) {
      return std::nullopt;
    }
    bound *= std::max<std::int64_t>(dimension, 1);
  }
  return is_empty ? 0 : bound;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return shape.empty() ? "a single number" : fmt::format("{}", fmt::join(shape, " x "));
}

void refuse_other_kinds(const FileSource& source, std::string_view start) {
  if (start.empty()) {
    refuse(source, "it is empty");
  }
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) {
    refuse_zip(source, start);
  }
  if (is_pickle(start)) {
    refuse_pickle(source);
  }
  for (const OtherKind& other : kOthers) {
    if (start.starts_with(other.magic)) {
      refuse_kind(source, other.problem, {});
    }
  }
  constexpr std::size_t kShown = 16;
  refuse_kind(source,
              fmt::format("it is neither a safetensors file, which has a header in JSON after 8 bytes, nor an .npy; it "
                          "begins with \"{}\"",
                          core::printable(start.substr(0, kShown))),
              {});
}

TensorList list_tensors(const FileSource& source) {
  constexpr std::size_t kBrace = 8;
  const std::string start = source.read(0, static_cast<std::size_t>(std::min<std::uint64_t>(kStart, source.size)));
  if (start.starts_with(kNpyMagic)) {
    return list_npy(source);
  }
  if (start.size() > kBrace && start[kBrace] == '{') {  // asked first: a header's length may look like any magic number
    return list_safetensors(source);
  }
  refuse_other_kinds(source, start);
}

std::vector<FileTensor> place_tensors(TensorList&& list, std::span<const std::byte> file) {
  std::vector<FileTensor> tensors;
  tensors.reserve(list.tensors.size());
  for (ListedTensor& listed : list.tensors) {
    listed.tensor.bytes = file.subspan(static_cast<std::size_t>(listed.begin), static_cast<std::size_t>(listed.size));
    tensors.push_back(std::move(listed.tensor));
  }
  return tensors;
}

}  // namespace numcheck::data
