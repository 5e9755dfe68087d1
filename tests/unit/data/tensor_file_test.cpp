// Files that are no tensor files, and large ones.
#include "data/tensor_file.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/unit/data/tensor_files.hpp"

namespace numcheck::data {
namespace {

namespace fs = std::filesystem;

TEST(TensorFile, what_is_not_a_regular_file_is_refused_without_waiting) {
  const test::TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink(folder.path() / "nowhere", folder.path() / "link");
  for (const auto& [path, reason] :
       std::vector<std::pair<fs::path, std::string>>{{folder.path(), "it is a folder"},
                                                     {pipe, "it is a pipe, not a regular file"},
                                                     {"/dev/zero", "it is a device, not a regular file"},
                                                     {folder.path() / "nowhere", "no such file"},
                                                     {folder.path() / "link", "no such file"}}) {
    try {
      (void)TensorFile::open(path);
      FAIL() << path;
    } catch (const core::IoError& error) {
      EXPECT_EQ(error.what(), "cannot read " + path.string() + ": " + reason);
    }
  }
}

TEST(TensorFile, links_are_followed) {
  const test::TemporaryFolder folder;
  fs::create_symlink(folder.write("x", safetensors_text("{}", "")), folder.path() / "link");
  EXPECT_TRUE(TensorFile::open(folder.path() / "link").tensors().empty());
}

TEST(TensorFile, other_kinds_of_files_are_named) {
  EXPECT_EQ(complaint(""), "it is empty");
  EXPECT_EQ(complaint("a\x1b,b"),
            "it is neither a safetensors file, which has a header in JSON after 8 bytes, nor an .npy; "
            "it begins with \"a\\x1b,b\"");
  EXPECT_EQ(complaint(safetensors_text("[]", "")),
            "it is neither a safetensors file, which has a header in JSON after 8 bytes, nor an .npy; it begins with "
            "\"\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00[]\"");
  EXPECT_EQ(complaint("\x89HDF\r\n\x1a\n"), "it is an HDF5 file; save its arrays as safetensors or .npy");
  EXPECT_EQ(complaint("version https://git-lfs.github.com/spec/v1\n"),
            "it is a pointer of Git LFS, not the file itself; git lfs pull gets that");
}

TEST(TensorFile, pickles_are_refused_with_the_lines_that_convert_them) {
  constexpr std::string_view kAnswer =
      "it is a pickle, which can run any code when it is read; Python converts it to safetensors:\n"
      "import torch, safetensors.torch\n"
      "safetensors.torch.save_file(torch.load(\"FOLDER/run/x.pt\", map_location=\"cpu\", weights_only=True), "
      "\"FOLDER/run/x.safetensors\")";
  EXPECT_EQ(complaint("\x80\x02}q", "run/x.pt"), kAnswer);
  EXPECT_EQ(complaint(std::string("PK\3\4") + std::string(22, '\0') + std::string("\x10\0\0\0", 4) + "archive/data.pkl",
                      "run/x.pt"),
            kAnswer);
  EXPECT_EQ(complaint("\x80\x02}q", "a\"b\\.pt"),
            std::string(
                "it is a pickle, which can run any code when it is read; Python converts it to safetensors:\n"
                "import torch, safetensors.torch\n"
                R"(safetensors.torch.save_file(torch.load("FOLDER/a\"b\\.pt", map_location="cpu", weights_only=True), )"
                R"("FOLDER/a\"b\\.safetensors"))"));
}

TEST(TensorFile, zip_archives_are_refused) {
  const auto zip = [](std::string_view name) {
    return std::string("PK\3\4") + std::string(22, '\0') + static_cast<char>(name.size()) + std::string(3, '\0') +
           std::string(name);
  };
  EXPECT_EQ(
      complaint(zip("a.npy"), "x.npz"),
      "it is a zip archive of arrays (.npz); Python converts it to safetensors:\nimport numpy, safetensors.numpy\n"
      "safetensors.numpy.save_file(dict(numpy.load(\"FOLDER/x.npz\")), \"FOLDER/x.safetensors\")");
  EXPECT_EQ(complaint(zip("a.txt")), "it is a zip archive; unpack it, or save the tensors as safetensors");
  EXPECT_EQ(complaint("PK\3\4"), "it is a zip archive; unpack it, or save the tensors as safetensors");
}

TEST(TensorFile, kinds_that_are_not_read_are_mistakes_in_use_and_broken_files_are_not) {
  const test::TemporaryFolder folder;
  EXPECT_THROW((void)TensorFile::open(folder.write("x", "\x80\x02}q")), core::UsageError);
  EXPECT_THROW((void)TensorFile::open(folder.write("x", "hello")), core::UsageError);
  EXPECT_THROW((void)TensorFile::open(folder.write("x", "")), core::IoError);
  EXPECT_THROW((void)TensorFile::open(folder.write("x", safetensors_text("{", ""))), core::IoError);
}

TEST(TensorFile, opening_a_large_file_reads_its_header_alone) {
  constexpr std::uint64_t kBytes = 10'000'000'000;
  const test::TemporaryFolder folder;
  const std::string header = R"({"w":{"dtype":"F8_E4M3","shape":[100000,100000],"data_offsets":[0,10000000000]}})";
  const std::string path = folder.write("x", safetensors_text(header, ""));
  std::error_code failure;
  fs::resize_file(path, 8 + header.size() + kBytes, failure);
  if (failure) {
    GTEST_SKIP() << "no sparse files here: " << failure.message();
  }
  const auto start = std::chrono::steady_clock::now();
  const TensorFile file = TensorFile::open(path);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_EQ(file.tensors()[0].bytes.size(), kBytes);
  EXPECT_EQ(file.tensors()[0].bytes.back(), std::byte{0});
}

}  // namespace
}  // namespace numcheck::data
