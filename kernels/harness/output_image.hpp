// An output in host memory, to be changed and written back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/codec.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/harness/port_image.hpp"

namespace numcheck::kernels::harness {

/// A copy; nothing changes before write_back().
class Image {
 public:
  Image(DeviceMemory& memory, const PortMemory& port_memory)
      : memory_(memory), port_memory_(port_memory), bytes_(port_memory.port->extent_bytes()) {
    memory_.download(bytes_, port_memory_.data);
  }
  void write_back() { memory_.upload(port_memory_.data, bytes_); }

  [[nodiscard]] const op::Port& port() const { return *port_memory_.port; }
  [[nodiscard]] std::size_t element_bytes() const {
    return static_cast<std::size_t>(core::dtype_info(port().dtype).storage_bytes);
  }
  [[nodiscard]] std::byte* at(std::int64_t row, std::int64_t col, std::int64_t batch = 0) {
    return bytes_.data() + element_offset(port(), batch, row, col);
  }
  [[nodiscard]] std::uint64_t bits(std::int64_t row, std::int64_t col, std::int64_t batch = 0) {
    std::uint64_t value = 0;
    std::memcpy(&value, at(row, col, batch), element_bytes());
    return value;
  }
  void set_bits(std::int64_t row, std::int64_t col, std::uint64_t value, std::int64_t batch = 0) {
    std::memcpy(at(row, col, batch), &value, element_bytes());
  }

 private:
  DeviceMemory& memory_;
  PortMemory port_memory_;
  std::vector<std::byte> bytes_;
};

}  // namespace numcheck::kernels::harness
