// The bytes of one port: which are elements, and which are padding that a kernel must not touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "core/buffer.hpp"
#include "core/hash.hpp"
#include "op/op.hpp"

namespace numcheck::kernels::harness {

/// Calls body(offset, bytes) for every maximal run of element bytes, in order of address: one run for a dense port, one
/// per row otherwise. Everything else within Port::extent_bytes() is padding.
void for_each_run(const op::Port& port, const std::function<void(std::size_t offset, std::size_t bytes)>& body);

/// True if the port has padding (leading bytes of a displaced first element included).
[[nodiscard]] bool has_padding(const op::Port& port) noexcept;

/// Fills the padding of an image with `pattern`.
void fill_padding(const op::Port& port, std::span<std::byte> image, std::uint8_t pattern);

/// Offset of the first padding byte that is not `pattern`, or nothing.
[[nodiscard]] std::optional<std::size_t> first_changed_padding(const op::Port& port, std::span<const std::byte> image,
                                                               std::uint8_t pattern);

/// Digest of the logical elements, row-major; the padding does not matter. `scratch` grows if needed.
[[nodiscard]] core::Digest digest_elements(const op::Port& port, std::span<const std::byte> image,
                                           core::Buffer<std::byte>& scratch);

/// True if the byte at `offset` belongs to an element.
[[nodiscard]] bool is_element_byte(const op::Port& port, std::size_t offset) noexcept;

/// Byte offset of element (batch, row, col).
[[nodiscard]] std::size_t element_offset(const op::Port& port, std::int64_t batch, std::int64_t row, std::int64_t col);

}  // namespace numcheck::kernels::harness
