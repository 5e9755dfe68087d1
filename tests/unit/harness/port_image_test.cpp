// Which bytes of a port are elements.
#include "kernels/harness/port_image.hpp"

#include <gtest/gtest.h>

namespace numcheck::kernels {
namespace {

op::Port port(std::int64_t batch, std::int64_t rows, std::int64_t cols, std::int64_t pad, std::int64_t offset) {
  op::Port p{.name = "x", .dtype = core::Dtype::bf16, .batch = batch, .rows = rows, .cols = cols};
  p.ld = cols + pad;
  p.batch_stride = rows * p.ld;
  p.offset_bytes = offset;
  return p;
}

TEST(PortImage, element_bytes_and_padding_partition_the_buffer) {
  for (const op::Port& p : {port(1, 1, 1, 0, 0), port(3, 4, 5, 2, 6), port(2, 3, 4, 0, 0), port(1, 1, 7, 3, 2),
                            port(4, 1, 3, 0, 10), port(2, 2, 0, 0, 0)}) {
    std::vector<std::byte> image(p.extent_bytes(), std::byte{1});
    harness::fill_padding(p, image, 0xFF);
    std::size_t elements = 0;
    for (std::size_t i = 0; i < image.size(); ++i) {
      EXPECT_EQ(harness::is_element_byte(p, i), image[i] == std::byte{1}) << i;
      elements += harness::is_element_byte(p, i) ? 1U : 0U;
    }
    EXPECT_EQ(elements, static_cast<std::size_t>(p.elements()) * 2);
    EXPECT_EQ(harness::has_padding(p), elements != image.size());
    EXPECT_FALSE(harness::first_changed_padding(p, image, 0xFF));
  }
}

TEST(PortImage, every_changed_padding_byte_is_found) {
  const op::Port p = port(2, 3, 4, 1, 6);
  std::vector<std::byte> image(p.extent_bytes(), std::byte{0xFF});
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = std::byte{0};
    const auto found = harness::first_changed_padding(p, image, 0xFF);
    EXPECT_EQ(found.has_value(), !harness::is_element_byte(p, i));
    EXPECT_EQ(found.value_or(i), i);
    image[i] = std::byte{0xFF};
  }
}

TEST(PortImage, digests_cover_every_element_byte_and_nothing_else) {
  const op::Port p = port(2, 3, 4, 1, 6);
  core::Buffer<std::byte> scratch;
  std::vector<std::byte> image(p.extent_bytes(), std::byte{0});
  const core::Digest zero = harness::digest_elements(p, image, scratch);
  for (std::size_t i = 0; i < image.size(); ++i) {
    image[i] = std::byte{1};
    EXPECT_EQ(harness::digest_elements(p, image, scratch) != zero, harness::is_element_byte(p, i)) << i;
    image[i] = std::byte{0};
  }
}

}  // namespace
}  // namespace numcheck::kernels
