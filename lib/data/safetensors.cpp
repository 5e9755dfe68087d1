#include "data/safetensors.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "data/file_format.hpp"

namespace numcheck::data {
namespace {

constexpr std::size_t kAlignment = 8;  // of the first tensor: the format asks for a header padded with spaces

/// In the order of writing: readers may rely on ascending offsets.
std::string header_of(std::span<const StoredTensor> tensors, const std::map<std::string, std::string>& texts) {
  nlohmann::ordered_json header = {{"__metadata__", texts}};
  std::size_t place = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::size_t end = place + tensor.bytes.size();
    header[tensor.name] = {{"dtype", tensor.format}, {"shape", tensor.shape}, {"data_offsets", {place, end}}};
    place = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

StoredTensor dense_tensor(const op::Port& port, std::span<const std::byte> image, std::vector<std::byte>& scratch) {
  StoredTensor tensor{std::string(port.name), safetensors_format(port.dtype), {port.rows, port.cols}, {}};
  if (port.batch != 1) {
    tensor.shape.insert(tensor.shape.begin(), port.batch);
  }
  const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const std::size_t bytes = static_cast<std::size_t>(port.elements()) * element;
  const std::size_t row = static_cast<std::size_t>(port.cols) * element;
  if (bytes == 0 || (port.is_dense() && port.offset_bytes == 0)) {
    tensor.bytes = image.first(bytes);
    return tensor;
  }
  scratch.resize(bytes);
  std::byte* target = scratch.data();
  for (std::int64_t batch = 0; batch < port.batch; ++batch) {
    for (std::int64_t r = 0; r < port.rows; ++r) {
      const auto index = static_cast<std::size_t>(batch * port.batch_stride + r * port.ld);
      std::memcpy(target, image.data() + static_cast<std::size_t>(port.offset_bytes) + index * element, row);
      target += row;
    }
  }
  tensor.bytes = scratch;
  return tensor;
}

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& texts) {
  static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so are the bytes here");
  const std::string header = header_of(tensors, texts);
  const std::uint64_t length = header.size();
  core::NewFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const StoredTensor& tensor : tensors) {
    file.write(tensor.bytes);
  }
  file.publish();
}

}  // namespace numcheck::data
