// A file that is, or almost is, safetensors: a header in a line and data if it begins with '{', otherwise as it comes.
#include <cstring>

#include "tensors.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace numcheck;
  const std::string_view text = fuzz::text(data, size);
  if (!text.starts_with('{')) {
    fuzz::read_tensors(text);
    return 0;
  }
  const auto [header, elements] = fuzz::split_header(text);
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  fuzz::read_tensors(file.append(header).append(elements));
  return 0;
}
