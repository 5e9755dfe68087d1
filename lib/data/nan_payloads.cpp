#include "data/nan_payloads.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/codec.hpp"

namespace numcheck::data {
namespace {

/// A quiet NaN that depends on the index.
std::uint64_t nan_of(std::uint64_t index, const core::DtypeInfo& format) {
  const int free = format.fraction_bits - 1;  // the first bit of the fraction makes it quiet
  const std::uint64_t hash = (index + 1) * 0x9e37'79b9'7f4a'7c15U;
  const std::uint64_t payload = (hash >> 20) % ((std::uint64_t{1} << free) - 1);
  const int exponent_bits = 8 * format.storage_bytes - 1 - format.fraction_bits;
  const std::uint64_t exponent = ((std::uint64_t{1} << exponent_bits) - 1) << format.fraction_bits;
  const std::uint64_t sign = (hash >> 63) << (8 * format.storage_bytes - 1);
  return sign | exponent | (std::uint64_t{1} << free) | payload;
}

}  // namespace

void vary_nans(const op::Port& port, std::span<std::byte> bytes) {
  const core::DtypeInfo& format = core::dtype_info(port.dtype);
  const auto size = static_cast<std::size_t>(format.storage_bytes);
  if (size < 2 || core::is_integer(port.dtype)) {
    return;
  }
  std::uint64_t index = 0;
  for (std::int64_t row = 0; row < port.batch * port.rows; ++row) {
    const std::int64_t begin = row / port.rows * port.batch_stride + row % port.rows * port.ld;
    for (std::int64_t column = 0; column < port.cols; ++column, ++index) {
      std::byte* const at = bytes.data() + port.offset_bytes + static_cast<std::size_t>(begin + column) * size;
      std::uint64_t bits = 0;
      std::memcpy(&bits, at, size);
      if (std::isnan(core::decode(bits, port.dtype))) {
        bits = nan_of(index, format);
        std::memcpy(at, &bits, size);
      }
    }
  }
}

}  // namespace numcheck::data
