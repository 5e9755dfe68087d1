// Tensor files as another reader sees them.
#include "data/safetensors.hpp"

#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::data {
namespace {

using nlohmann::json;

op::Port make_port(std::int64_t batch, std::int64_t rows, std::int64_t cols, core::Dtype dtype) {
  op::Port port{.name = "a", .dtype = dtype, .batch = batch, .rows = rows, .cols = cols, .ld = cols};
  port.batch_stride = rows * cols;
  return port;
}

std::vector<std::byte> counting(std::size_t bytes) {
  std::vector<std::byte> image(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    image[i] = static_cast<std::byte>(i);
  }
  return image;
}

/// A file, parsed as the format's description says.
struct File {
  json header;
  std::string data;

  explicit File(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(stream), {}};
    std::uint64_t length = 0;
    std::memcpy(&length, all.data(), sizeof length);
    EXPECT_EQ(length % 8, 0U);
    header = json::parse(all.substr(8, length));
    data = all.substr(8 + length);
  }
  [[nodiscard]] std::string bytes_of(const std::string& name) const {
    const json& place = header.at(name).at("data_offsets");
    return data.substr(place[0], place[1].get<std::size_t>() - place[0].get<std::size_t>());
  }
};

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Safetensors, a_dense_port_is_written_unchanged) {
  const std::vector<std::byte> image = counting(100);
  std::vector<std::byte> scratch;
  const StoredTensor tensor = dense_tensor(make_port(1, 3, 5, core::Dtype::bf16), image, scratch);
  EXPECT_EQ(tensor.format, "BF16");
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(tensor.bytes.data(), image.data());
  EXPECT_EQ(tensor.bytes.size(), 30U);
}

TEST(Safetensors, padding_is_left_out) {
  op::Port port = make_port(2, 2, 3, core::Dtype::fp8_e4m3);
  port.ld = 4;
  port.batch_stride = 10;
  port.offset_bytes = 1;
  const std::vector<std::byte> image = counting(port.extent_bytes());
  std::vector<std::byte> scratch;
  const StoredTensor tensor = dense_tensor(port, image, scratch);
  EXPECT_EQ(tensor.format, "F8_E4M3");
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 2, 3}));
  EXPECT_EQ(text_of(tensor.bytes), std::string("\1\2\3\5\6\7\13\14\15\17\20\21", 12));
}

TEST(Safetensors, empty_ports_have_no_bytes) {
  std::vector<std::byte> scratch;
  const StoredTensor tensor = dense_tensor(make_port(1, 0, 5, core::Dtype::fp32), {}, scratch);
  EXPECT_TRUE(tensor.bytes.empty());
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{0, 5}));
}

TEST(Safetensors, header_and_bytes_fit_together) {
  const test::TemporaryFolder folder;
  const std::vector<std::byte> first = counting(6);
  const std::array<double, 2> second = {1.5, -2};
  const std::vector<StoredTensor> tensors = {{"z", "U8", {6}, first},
                                             {"expected_d", "F64", {2}, std::as_bytes(std::span(second))}};
  const std::filesystem::path path = folder.path() / "x.safetensors";
  write_safetensors(path, tensors, {{"case", "gemm/\"quoted\""}, {"odd", "\xff"}});
  const File file(path);
  EXPECT_EQ(file.header.at("z").at("dtype"), "U8");
  EXPECT_EQ(file.header.at("z").at("shape"), json({6}));
  EXPECT_EQ(file.bytes_of("z"), text_of(first));
  EXPECT_EQ(file.bytes_of("expected_d"), text_of(std::as_bytes(std::span(second))));
  EXPECT_EQ(file.data.size(), 22U) << "nothing but the tensors";
  EXPECT_EQ(file.header.at("__metadata__").at("case"), "gemm/\"quoted\"");
}

TEST(Safetensors, a_file_that_cannot_be_written_is_named_and_left_out) {
  const test::TemporaryFolder folder;
  EXPECT_THROW(write_safetensors(folder.path() / "nowhere" / "x", {}, {}), core::IoError);
  std::signal(SIGXFSZ, SIG_IGN);
  const std::filesystem::path full = folder.path() / "full";
  const std::vector<std::byte> bytes(1 << 20);
  const std::vector<StoredTensor> tensors = {{"a", "U8", {1 << 20}, bytes}};
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit tight{1 << 16, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  std::string words;
  try {
    write_safetensors(full, tensors, {});
  } catch (const core::IoError& error) {
    words = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_NE(words.find("full: File too large"), std::string::npos) << words;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Safetensors, a_link_is_not_followed) {
  const test::TemporaryFolder folder;
  const std::string victim = folder.write("victim", "mine");
  std::filesystem::create_symlink(victim, folder.path() / "tensors");
  const std::vector<std::byte> bytes(8);
  const std::vector<StoredTensor> tensors = {{"a", "U8", {8}, bytes}};
  write_safetensors(folder.path() / "tensors", tensors, {});
  EXPECT_EQ(std::filesystem::file_size(victim), 4U);
  EXPECT_FALSE(std::filesystem::is_symlink(folder.path() / "tensors"));
}

}  // namespace
}  // namespace numcheck::data
