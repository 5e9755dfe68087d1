#include "kernels/transformer_engine/find.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <gtest/gtest.h>

#include "kernels/transformer_engine/needed.hpp"
#include "machine/python_packages.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

namespace fs = std::filesystem;

constexpr std::array kVariables = {"TE_NUMCHECK_TE_LIB", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PATH", "HOME"};

void touch(const fs::path& file) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "no library";
}

/// Python environments in a folder of the test, hiding those of the machine.
class FindTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) {
      const char* value = std::getenv(name);
      before_.emplace_back(value == nullptr ? std::nullopt : std::optional<std::string>(value));
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < kVariables.size(); ++i) {
      if (before_[i].has_value()) {
        setenv(kVariables.at(i), before_[i]->c_str(), 1);
      } else {
        unsetenv(kVariables.at(i));
      }
    }
  }

  [[nodiscard]] fs::path packages(const std::string& prefix) const {
    return folder_.path() / prefix / "lib" / "python3.12" / "site-packages";
  }
  /// An environment with the wheel of a version; returns the library.
  fs::path install(const std::string& prefix, const std::string& version) const {
    const fs::path file = packages(prefix) / "transformer_engine" / "wheel_lib" / "libtransformer_engine.so";
    touch(file);
    fs::create_directories(packages(prefix) / ("transformer_engine_cu13-" + version + ".dist-info"));
    return file;
  }
  static void set(const char* name, const fs::path& value) { setenv(name, value.c_str(), 1); }

  numcheck::test::TemporaryFolder folder_;

 private:
  std::vector<std::optional<std::string>> before_;
};

TEST(TeVersion, reads_major_and_minor) {
  const auto release = parse_version("2.20.2");
  ASSERT_TRUE(release.has_value());
  EXPECT_TRUE(release->at_least(2, 9));
  EXPECT_TRUE(release->at_least(2, 20));
  EXPECT_FALSE(release->at_least(2, 21));
  EXPECT_FALSE(release->at_least(3, 0));
  EXPECT_EQ(release->text, "2.20.2");
  EXPECT_TRUE(parse_version("3.0")->at_least(2, 20));
  EXPECT_FALSE(parse_version("1.13.0")->at_least(2, 9));
  EXPECT_EQ(parse_version("2.21.0.dev0+1a2b3c4")->minor, 21);
}

TEST(TeVersion, refuses_invalid_versions) {
  for (const char* text : {"", "2", "2.", "two.nine", ".9", "v2.9", "99999999999.1", "2.99999999999"}) {
    EXPECT_FALSE(parse_version(text).has_value()) << text;
  }
}

TEST_F(FindTest, takes_the_active_environment_first) {
  install("other", "2.11.0");
  const fs::path wanted = install("active", "2.20.2");
  set("VIRTUAL_ENV", folder_.path() / "active");
  set("CONDA_PREFIX", folder_.path() / "other");
  const Search search = find_library({});
  ASSERT_TRUE(search.found.has_value()) << search.problem;
  EXPECT_EQ(search.found->file, wanted);
  EXPECT_EQ(search.found->version->text, "2.20.2");
  EXPECT_EQ(text_of(*search.found), "2.20.2 (" + wanted.string() + ")");
}

TEST_F(FindTest, takes_the_environment_of_the_python3_on_path) {
  const fs::path wanted = install("inactive", "2.15.0");
  touch(folder_.path() / "inactive" / "bin" / "python3");
  set("PATH", (folder_.path() / "nowhere").string() + ":" + (folder_.path() / "inactive" / "bin").string());
  EXPECT_EQ(find_library({}).found->file, wanted);
}

TEST_F(FindTest, takes_a_source_build_and_an_editable_one) {
  touch(packages("source") / "transformer_engine" / "libtransformer_engine.so");
  fs::create_directories(packages("source") / "transformer_engine-2.16.0+abc.dist-info");
  set("VIRTUAL_ENV", folder_.path() / "source");
  EXPECT_EQ(find_library({}).found->version->minor, 16);

  touch(folder_.path() / "checkout" / "libtransformer_engine.so");
  set("PYTHONPATH", folder_.path() / "checkout");
  const Search search = find_library({});
  EXPECT_EQ(search.found->file.parent_path(), folder_.path() / "checkout");
  EXPECT_FALSE(search.found->version.has_value());
}

TEST_F(FindTest, prefers_the_core_package_over_the_one_without_a_library) {
  install("both", "2.20.2");
  fs::create_directories(packages("both") / "transformer_engine-2.19.0.dist-info");
  fs::create_directories(packages("both") / "transformer_engine_torch-2.18.0.dist-info");
  EXPECT_EQ(installed_version(packages("both"))->text, "2.20.2");
}

TEST_F(FindTest, refuses_versions_before_2_9_with_a_sentence) {
  install("old", "2.8.0");
  set("VIRTUAL_ENV", folder_.path() / "old");
  const Search search = find_library({});
  EXPECT_FALSE(search.found.has_value());
  EXPECT_NE(search.problem.find("TransformerEngine 2.8.0"), std::string::npos) << search.problem;
  EXPECT_NE(search.problem.find("needs 2.9 or newer; upgrade it (pip install"), std::string::npos) << search.problem;
}

TEST_F(FindTest, says_how_to_install_if_there_is_none) {
  fs::create_directories(packages("empty"));
  set("VIRTUAL_ENV", folder_.path() / "empty");
  const Search search = find_library({});
  EXPECT_FALSE(search.found.has_value());
  EXPECT_NE(search.problem.find(packages("empty").string()), std::string::npos) << search.problem;
  EXPECT_NE(search.problem.find("pip install transformer-engine-cu13"), std::string::npos) << search.problem;
  EXPECT_NE(search.problem.find("--te-lib"), std::string::npos) << search.problem;
}

TEST_F(FindTest, a_given_path_is_the_only_one) {
  install("active", "2.20.2");
  const fs::path other = install("other", "2.11.0");
  set("VIRTUAL_ENV", folder_.path() / "active");
  const std::vector<std::string> file = {other.string()}, environment = {packages("other").string()};
  EXPECT_EQ(find_library(file).found->file, other);
  EXPECT_EQ(find_library(environment).found->file, other);
  set("TE_NUMCHECK_TE_LIB", other);
  EXPECT_EQ(find_library({}).found->version->text, "2.11.0");

  const std::vector<std::string> absent = {"/nowhere/libtransformer_engine.so"};
  EXPECT_EQ(find_library(absent).problem.find("--te-lib: /nowhere/libtransformer_engine.so is not a file"), 0U);
  const std::vector<std::string> bare = {folder_.path().string()};
  EXPECT_NE(find_library(bare).problem.find("has no libtransformer_engine.so"), std::string::npos);
  set("TE_NUMCHECK_TE_LIB", "/nowhere");
  EXPECT_EQ(find_library({}).problem.find("TE_NUMCHECK_TE_LIB: /nowhere is not a file"), 0U);
}

TEST_F(FindTest, never_looks_below_the_working_folder) {
  const fs::path before = fs::current_path();
  install("env", "2.20.2");
  touch(folder_.path() / "env" / "bin" / "python3");
  touch(folder_.path() / "libtransformer_engine.so");
  fs::current_path(folder_.path());
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"PYTHONPATH", "."},
                                                                  {"PYTHONPATH", ":"},
                                                                  {"PYTHONPATH", "./env/lib/python3.12/site-packages"},
                                                                  {"VIRTUAL_ENV", "env"},
                                                                  {"CONDA_PREFIX", "./env"},
                                                                  {"PATH", "env/bin"}}) {
    setenv(name, value, 1);
    for (const fs::path& folder : machine::python_package_folders()) {
      EXPECT_TRUE(folder.is_absolute()) << name << "=" << value << ": " << folder;
    }
    const Search search = find_library({});
    EXPECT_FALSE(search.found.has_value() && search.found->file.string().find("env/lib") != std::string::npos) << name;
    unsetenv(name);
  }
  // A path that the user names may be relative.
  const std::vector<std::string> named = {"libtransformer_engine.so"};
  EXPECT_EQ(find_library(named).found->file, folder_.path() / "libtransformer_engine.so");
  fs::current_path(before);
}

TEST_F(FindTest, refuses_two_libraries) {
  const std::vector<std::string> two = {install("a", "2.20.2").string(), install("b", "2.11.0").string()};
  EXPECT_NE(find_library(two).problem.find("cannot load two TransformerEngine libraries"), std::string::npos);
}

TEST_F(FindTest, reads_what_a_shared_object_needs) {
  const std::vector<std::string> needed = needed_libraries("/proc/self/exe");
  EXPECT_NE(std::ranges::find(needed, "libc.so.6"), needed.end());
  EXPECT_TRUE(needed_libraries(folder_.path() / "absent").empty());
  const fs::path text = folder_.path() / "text";
  touch(text);
  EXPECT_TRUE(needed_libraries(text).empty());
  // Only the beginning of a real file, with headers that point past its end.
  std::ifstream whole("/proc/self/exe", std::ios::binary);
  std::array<char, 512> head{};
  whole.read(head.data(), head.size());
  std::ofstream(text, std::ios::binary).write(head.data(), head.size());
  EXPECT_TRUE(needed_libraries(text).empty());
}

}  // namespace
}  // namespace numcheck::kernels::transformer_engine
