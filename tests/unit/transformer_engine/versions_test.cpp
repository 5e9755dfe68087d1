#include "kernels/transformer_engine/versions.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "kernels/transformer_engine/find.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

namespace fs = std::filesystem;

class VersionsTest : public ::testing::Test {
 protected:
  /// A folder of packages with the wheel of a version; without version there is none beside the library.
  [[nodiscard]] std::string install(const std::string& name, const std::string& version) const {
    const fs::path packages = folder_.path() / name;
    const fs::path file = packages / "transformer_engine" / "wheel_lib" / "libtransformer_engine.so";
    fs::create_directories(file.parent_path());
    std::ofstream(file) << "no library";
    if (!version.empty()) {
      fs::create_directories(packages / ("transformer_engine_cu13-" + version + ".dist-info"));
    }
    return file.string();
  }
  static std::vector<std::string> names(const std::vector<std::string>& paths) {
    std::vector<std::string> list;
    for (const NamedLibrary& library : name_libraries(paths)) {
      list.push_back(library.backend);
    }
    return list;
  }

  numcheck::test::TemporaryFolder folder_;
};

using Names = std::vector<std::string>;

TEST_F(VersionsTest, libraries_are_named_after_their_versions) {
  const std::string old = install("old", "2.8.0");
  EXPECT_EQ(names({install("new", "2.20.2"), old, install("odd", "")}),
            (Names{"transformer_engine@2.20.2", "transformer_engine@2.8.0", "transformer_engine@unknown"}));
  const std::string folder = fs::path(old).parent_path().parent_path().parent_path().string();
  EXPECT_EQ(names({folder}), Names{"transformer_engine@2.8.0"}) << "a folder of packages";
  EXPECT_EQ(version_at(folder)->text, "2.8.0");
  EXPECT_FALSE(version_at(folder_.path().string()).has_value()) << "a folder without a library";
}

TEST_F(VersionsTest, equal_versions_have_letters_in_the_order_given) {
  const std::string a = install("a", "2.20.2"), b = install("b", "2.20.2"), c = install("c", "2.11.0");
  EXPECT_EQ(names({b, c, a}),
            (Names{"transformer_engine@2.20.2-a", "transformer_engine@2.11.0", "transformer_engine@2.20.2-b"}));
  EXPECT_EQ(name_libraries(std::vector<std::string>{b, c, a})[0].path, b);
  const std::vector<std::string> many(28, install("none", ""));
  EXPECT_EQ(names(many)[25], "transformer_engine@unknown-z");
  EXPECT_EQ(names(many)[27], "transformer_engine@unknown-ab");
}

TEST_F(VersionsTest, long_versions_stay_apart) {
  const std::string version = "2.21.0.dev0+" + std::string(80, 'x');
  const Names made = names({install("a", version), install("b", version)});
  EXPECT_NE(made[0], made[1]);
  EXPECT_LE(made[1].size(), 64U);
}

TEST_F(VersionsTest, a_case_chooses_the_library_of_its_name) {
  const std::vector<std::string> paths = {install("a", "2.20.2"), install("b", "2.11.0")};
  EXPECT_EQ(choose_library(paths, "2.11.0").paths, std::vector<std::string>{paths[1]});
  EXPECT_EQ(choose_library(paths, "").paths, paths);
  const Choice none = choose_library(paths, "2.9.0");
  EXPECT_EQ(
      none.problem,
      "no --te-lib is transformer_engine@2.9.0; choose from: transformer_engine@2.20.2, transformer_engine@2.11.0");
  EXPECT_EQ(choose_library({}, "2.9.0").problem, "no --te-lib is transformer_engine@2.9.0");
}

}  // namespace
}  // namespace numcheck::kernels::transformer_engine
