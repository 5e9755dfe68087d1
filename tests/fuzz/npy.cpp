// A file that is, or almost is, an .npy: as it comes if it has the magic, otherwise a header in a line and data.
#include "tensors.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace numcheck;
  const std::string_view text = fuzz::text(data, size);
  if (text.starts_with(data::kNpyMagic)) {
    fuzz::read_tensors(text);
    return 0;
  }
  const auto [header, elements] = fuzz::split_header(text);
  std::string file(data::kNpyMagic);
  file += {'\x01', '\x00', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
  fuzz::read_tensors(file.append(header).append(elements));
  return 0;
}
