// Files are read within limits, and written completely or not at all.
#include "core/file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::core {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// The message of the error, or "".
template <class Call>
std::string failure(const Call& call) {
  try {
    call();
  } catch (const IoError& error) {
    return error.what();
  }
  return "";
}

/// Sets the umask of the process while it lives.
class Umask {
 public:
  explicit Umask(mode_t mask) : old_(::umask(mask)) {}
  ~Umask() { ::umask(old_); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;

 private:
  mode_t old_;
};

TEST(ReadRegularFile, reads_up_to_the_limit) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("a", std::string("12345\0", 6));
  EXPECT_EQ(read_regular_file(path, 6).text, std::string("12345\0", 6));
  EXPECT_EQ(read_regular_file(path, 6).problem, "");
  EXPECT_EQ(read_regular_file(path, 5).problem, "it is larger than 5 B: it has 6 B");
  EXPECT_EQ(read_regular_file(folder.write("empty", ""), 0).problem, "");
}

TEST(ReadRegularFile, refuses_other_than_regular_files_without_waiting) {
  const test::TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_regular_file(pipe, 100).problem, "it is a pipe, not a regular file");
  EXPECT_EQ(read_regular_file("/dev/zero", 100).problem, "it is a device, not a regular file");
  EXPECT_EQ(read_regular_file(folder.path(), 100).problem, "it is a folder");
  EXPECT_EQ(read_regular_file(folder.path() / "gone", 100).problem, "no such file");
  fs::create_symlink(pipe, folder.path() / "link");
  EXPECT_EQ(read_regular_file(folder.path() / "link", 100).problem, "it is a pipe, not a regular file");

  const fs::path socket = folder.path() / "socket";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket.native().size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
  const core::FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(read_regular_file(socket, 100).problem, "it is a socket, not a regular file");
}

TEST(ReadRegularFile, refuses_virtual_files) {
  if (!fs::exists("/proc/self/environ")) {
    GTEST_SKIP() << "no /proc here";
  }
  for (const char* path : {"/proc/self/environ", "/proc/meminfo"}) {
    const FileText read = read_regular_file(path, 1 << 20);
    EXPECT_EQ(read.text, "") << path;
    EXPECT_NE(read.problem.find("(/proc, /sys)"), std::string::npos) << path << ": " << read.problem;
  }
}

TEST(IdentityOfFile, is_that_of_the_file_and_not_of_its_name) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.write("a", "x");
  fs::create_symlink(file, folder.path() / "soft");
  fs::create_hard_link(file, folder.path() / "hard");
  const fs::path copy = folder.write("copy", "x");
  ASSERT_TRUE(identity_of_file(file).has_value());
  EXPECT_EQ(identity_of_file(folder.path() / "soft"), identity_of_file(file));
  EXPECT_EQ(identity_of_file(folder.path() / "hard"), identity_of_file(file));
  EXPECT_NE(identity_of_file(copy), identity_of_file(file));
  EXPECT_FALSE(identity_of_file(folder.path()).has_value());
  EXPECT_FALSE(identity_of_file(folder.path() / "gone").has_value());
}

TEST(WriteFile, replaces_what_a_link_leads_to_and_keeps_the_link) {
  const test::TemporaryFolder folder;
  const fs::path target = folder.write("far/target", "old");
  fs::create_symlink("far/target", folder.path() / "report");
  fs::create_symlink("report", folder.path() / "link");
  write_file(folder.path() / "link", "new");
  EXPECT_EQ(content(target), "new");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "report"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  fs::remove(target);
  write_file(folder.path() / "link", "newer");
  EXPECT_EQ(content(target), "newer") << "a link to nothing is followed, too";
  EXPECT_EQ(entries(folder.path()), 3U) << "nothing else is left";
  EXPECT_EQ(entries(folder.path() / "far"), 1U);
}

TEST(WriteFile, refuses_links_that_lead_in_a_circle) {
  const test::TemporaryFolder folder;
  fs::create_symlink("b", folder.path() / "a");
  fs::create_symlink("a", folder.path() / "b");
  EXPECT_THROW(write_file(folder.path() / "a", "new"), IoError);
  EXPECT_THROW(try_new_file(folder.path() / "a"), IoError);
  EXPECT_TRUE(fs::is_symlink(folder.path() / "a"));
}

TEST(WriteFile, ignores_a_link_with_the_old_temporary_name) {
  const test::TemporaryFolder folder;
  const fs::path victim = folder.write("victim", "mine");
  fs::create_symlink(victim, folder.path() / ("report." + std::to_string(::getpid()) + ".tmp"));
  write_file(folder.path() / "report", "new");
  EXPECT_EQ(content(victim), "mine");
  EXPECT_EQ(content(folder.path() / "report"), "new");
}

TEST(WriteFile, the_umask_decides_who_may_read) {
  const test::TemporaryFolder folder;
  for (const auto& [mask, mode] : {std::pair(0022U, 0644U), std::pair(0077U, 0600U), std::pair(0002U, 0664U)}) {
    const Umask umask(mask);
    write_file(folder.path() / "report", "x");
    EXPECT_EQ(static_cast<unsigned>(fs::status(folder.path() / "report").permissions()), mode);
  }
}

TEST(WriteFile, takes_names_as_long_as_a_name_can_be) {
  const test::TemporaryFolder folder;
  const fs::path longest = folder.path() / std::string(255, 'x');
  write_file(longest, "x");
  EXPECT_EQ(content(longest), "x");
  const fs::path longer = folder.path() / std::string(256, 'x');
  EXPECT_NE(failure([&] { try_new_file(longer); }).find("File name too long"), std::string::npos);
}

TEST(WriteFile, leaves_nothing_if_it_fails) {
  std::signal(SIGXFSZ, SIG_IGN);
  const test::TemporaryFolder folder;
  const fs::path path = folder.write("report", "old");
  rlimit old{};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const rlimit tight{10, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const std::string words = failure([&] { write_file(path, "more than ten bytes"); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_NE(words.find("cannot write " + path.string() + ": File too large"), std::string::npos) << words;
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(entries(folder.path()), 1U);
  EXPECT_NE(failure([&] { write_file(folder.path(), "x"); }), "") << "a folder is not a file";
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(WriteFile, leaves_nothing_if_the_process_is_killed) {
  const test::TemporaryFolder folder;
  const fs::path path = folder.write("report", "old");
  if (!FileDescriptor(::open(folder.path().c_str(), O_WRONLY | O_TMPFILE, 0600)).valid()) {
    GTEST_SKIP() << "this file system has no files without a name";
  }
  const pid_t child = ::fork();
  if (child == 0) {
    write_file(path, [](const TakeText& take) {
      take("new");
      ::raise(SIGKILL);
    });
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(entries(folder.path()), 1U);
}

TEST(WriteFile, a_probe_leaves_nothing) {
  const test::TemporaryFolder folder;
  try_new_file(folder.path() / "report");
  EXPECT_EQ(entries(folder.path()), 0U);
  EXPECT_NE(failure([&] { try_new_file(folder.path() / "gone" / "report"); }).find("No such file"), std::string::npos);
}

TEST(IsInside, holds_for_files_that_do_not_exist_and_follows_links) {
  const test::TemporaryFolder folder;
  const fs::path back = fs::current_path();
  fs::current_path(folder.path());
  fs::create_directory("in");
  fs::create_directory("out");
  fs::create_directory_symlink("../out", "in/link");
  for (const char* file : {"in/none", "in/none/none", "in/../in/none", "./in"}) {
    EXPECT_TRUE(is_inside("in", file)) << file;
  }
  for (const char* file : {"none", "none/none", "none/../none"}) {
    EXPECT_TRUE(is_inside("", file)) << file;
  }
  for (const char* file : {"none", "inside", "in/link/none", "in/../none", "in/none/../../none"}) {
    EXPECT_FALSE(is_inside("in", file)) << file;
  }
  EXPECT_FALSE(is_inside("", "../none"));
  EXPECT_EQ(resolved_path("none/x"), fs::canonical(folder.path()) / "none/x");
  fs::current_path(back);
}

}  // namespace
}  // namespace numcheck::core
