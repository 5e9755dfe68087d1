#include "kernels/harness/port_image.hpp"

#include <algorithm>
#include <cstring>

namespace numcheck::kernels::harness {
namespace {

std::size_t storage_bytes(const op::Port& port) {
  return static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
}

bool is_contiguous(const op::Port& port) {
  return port.is_dense() || (port.batch == 1 && port.rows == 1);
}

/// Calls body(begin, end) for every maximal run of padding bytes.
template <class Body>
void for_each_gap(const op::Port& port, std::size_t extent, const Body& body) {
  std::size_t covered = 0;
  for_each_run(port, [&](std::size_t offset, std::size_t bytes) {
    if (offset > covered) {
      body(covered, offset);
    }
    covered = offset + bytes;
  });
  if (extent > covered) {
    body(covered, extent);
  }
}

}  // namespace

void for_each_run(const op::Port& port, const std::function<void(std::size_t offset, std::size_t bytes)>& body) {
  if (port.elements() == 0) {
    return;
  }
  const std::size_t size = storage_bytes(port);
  const auto start = static_cast<std::size_t>(port.offset_bytes);
  if (is_contiguous(port)) {
    body(start, static_cast<std::size_t>(port.elements()) * size);
    return;
  }
  for (std::int64_t b = 0; b < port.batch; ++b) {
    for (std::int64_t r = 0; r < port.rows; ++r) {
      body(element_offset(port, b, r, 0), static_cast<std::size_t>(port.cols) * size);
    }
  }
}

bool has_padding(const op::Port& port) noexcept {
  return port.elements() != 0 && (port.offset_bytes != 0 || !port.is_dense());
}

void fill_padding(const op::Port& port, std::span<std::byte> image, std::uint8_t pattern) {
  for_each_gap(port, image.size(),
               [&](std::size_t begin, std::size_t end) { std::memset(image.data() + begin, pattern, end - begin); });
}

std::optional<std::size_t> first_changed_padding(const op::Port& port, std::span<const std::byte> image,
                                                 std::uint8_t pattern) {
  std::optional<std::size_t> changed;
  for_each_gap(port, image.size(), [&](std::size_t begin, std::size_t end) {
    if (changed) {
      return;
    }
    const auto gap = image.subspan(begin, end - begin);
    const auto hit = std::ranges::find_if(gap, [pattern](std::byte b) { return b != std::byte{pattern}; });
    if (hit != gap.end()) {
      changed = begin + static_cast<std::size_t>(hit - gap.begin());
    }
  });
  return changed;
}

core::Digest digest_elements(const op::Port& port, std::span<const std::byte> image, core::Buffer<std::byte>& scratch) {
  const std::size_t total = static_cast<std::size_t>(port.elements()) * storage_bytes(port);
  if (total == 0 || is_contiguous(port)) {
    return core::digest_of(total == 0 ? image.first(0)
                                      : image.subspan(static_cast<std::size_t>(port.offset_bytes), total));
  }
  if (scratch.size() < total) {
    scratch = core::Buffer<std::byte>(total);
  }
  std::size_t filled = 0;
  for_each_run(port, [&](std::size_t offset, std::size_t bytes) {
    std::memcpy(scratch.data() + filled, image.data() + offset, bytes);
    filled += bytes;
  });
  return core::digest_of(std::span<const std::byte>(scratch.data(), filled));
}

bool is_element_byte(const op::Port& port, std::size_t offset) noexcept {
  const auto start = static_cast<std::size_t>(port.offset_bytes);
  if (port.elements() == 0 || offset < start) {
    return false;
  }
  const auto element = static_cast<std::int64_t>((offset - start) / storage_bytes(port));
  const std::int64_t in_batch = port.batch > 1 ? element % port.batch_stride : element;
  const std::int64_t batch = port.batch > 1 ? element / port.batch_stride : 0;
  return batch < port.batch && in_batch / port.ld < port.rows && in_batch % port.ld < port.cols;
}

std::size_t element_offset(const op::Port& port, std::int64_t batch, std::int64_t row, std::int64_t col) {
  return static_cast<std::size_t>(port.offset_bytes) +
         static_cast<std::size_t>(batch * port.batch_stride + row * port.ld + col) * storage_bytes(port);
}

}  // namespace numcheck::kernels::harness
