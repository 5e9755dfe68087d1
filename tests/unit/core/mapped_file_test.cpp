#include "core/mapped_file.hpp"

#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::core {
namespace {

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const IoError& error) {
    return error.what();
  }
  return {};
}

TEST(MappedFile, a_file_that_became_shorter_is_an_error_and_no_crash) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("x", std::string(10000, 'a'));
  const MappedFile file{std::filesystem::path(path)};
  file.check_size();
  std::filesystem::resize_file(path, 10);
  EXPECT_EQ(message_of([&] { (void)file.read(0, 100); }),
            "cannot read " + path + ": it became shorter while it was read");
  EXPECT_EQ(message_of([&] { file.check_size(); }),
            "cannot read " + path + ": it is being written; wait until it is complete");
  EXPECT_EQ(file.read(0, 10), "aaaaaaaaaa");
}

TEST(MappedFile, what_cannot_be_mapped_is_named) {
  const test::TemporaryFolder folder;
  const std::string nowhere = (folder.path() / "nowhere").string();
  EXPECT_EQ(message_of([&] { const MappedFile file{std::filesystem::path(nowhere)}; }),
            "cannot read " + nowhere + ": no such file");
  EXPECT_EQ(message_of([&] { const MappedFile file{folder.path()}; }),
            "cannot read " + folder.path().string() + ": it is a folder");
}

TEST(MappedFile, an_empty_file_has_no_bytes) {
  const test::TemporaryFolder folder;
  const MappedFile file{std::filesystem::path(folder.write("x", ""))};
  EXPECT_TRUE(file.bytes().empty());
  EXPECT_EQ(file.read(0, 0), "");
}

TEST(MappedFile, bytes_stay_where_they_are_when_it_is_moved) {
  const test::TemporaryFolder folder;
  MappedFile first{std::filesystem::path(folder.write("x", "abc"))};
  const std::byte* place = first.bytes().data();
  MappedFile second = std::move(first);
  EXPECT_EQ(second.bytes().data(), place);
  first = MappedFile(std::filesystem::path(folder.write("y", "de")));
  std::swap(first, second);
  EXPECT_EQ(first.bytes().data(), place);
  EXPECT_EQ(second.read(0, 2), "de");
}

}  // namespace
}  // namespace numcheck::core
