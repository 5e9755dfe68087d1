// Libraries in NVIDIA's Python wheels, without a CUDA toolkit: a stand-in in the layouts that pip makes.
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "kernels/cuda_support/inspect.hpp"
#include "kernels/cuda_support/library.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::kernels::cuda_support {
namespace {

namespace fs = std::filesystem;

constexpr std::array kVariables = {
    "TE_NUMCHECK_LIB_DIR", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PATH", "HOME", "CUDA_HOME"};
constexpr std::array kFiles = {"libnumcheckfake.so.13", "libnumcheckfake.so.12"};
constexpr LibraryName kFake{"fake", kFiles, "cublasLtGetVersion"};

class Wheels : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < kVariables.size(); ++i) {
      const char* value = std::getenv(kVariables.at(i));
      before_.at(i) = value == nullptr ? std::nullopt : std::optional<std::string>(value);
      unsetenv(kVariables.at(i));
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < kVariables.size(); ++i) {
      before_.at(i) ? setenv(kVariables.at(i), before_.at(i)->c_str(), 1) : unsetenv(kVariables.at(i));
    }
  }

  [[nodiscard]] fs::path install(const std::string& packages, const std::string& place, const char* name) const {
    const fs::path file = folder_.path() / packages / place / name;
    fs::create_directories(file.parent_path());
    fs::copy_file(NUMCHECK_FAKE_VERSIONS, file);
    return file;
  }
  void set(const char* name, const std::string& folder) const { setenv(name, (folder_.path() / folder).c_str(), 1); }
  static std::string found() { return SharedLibrary(kFake, "").path(); }

  numcheck::test::TemporaryFolder folder_;

 private:
  std::array<std::optional<std::string>, kVariables.size()> before_;
};

TEST_F(Wheels, of_cuda_13_and_of_cuda_12_are_found_in_the_active_environment) {
  const fs::path newer = install("new/lib/python3.12/site-packages", "nvidia/cu13/lib", kFiles[0]);
  const fs::path older = install("old/lib64/python3.10/site-packages", "nvidia/cublas/lib", kFiles[1]);
  set("VIRTUAL_ENV", "new");
  EXPECT_EQ(found(), newer);
  unsetenv("VIRTUAL_ENV");
  set("CONDA_PREFIX", "old");
  EXPECT_EQ(found(), older);
  set("VIRTUAL_ENV", "new");
  EXPECT_EQ(found(), newer) << "a virtual environment inside conda's";
}

TEST_F(Wheels, may_be_replaced_by_conda_or_by_a_toolkit_that_is_named) {
  const fs::path conda = install("conda", "lib", kFiles[0]);
  const fs::path toolkit = install("site-packages/nvidia/cu13", "lib", kFiles[0]);
  set("CONDA_PREFIX", "conda");
  EXPECT_EQ(found(), conda);
  set("CUDA_HOME", "site-packages/nvidia/cu13");
  EXPECT_EQ(found(), toolkit);
}

TEST_F(Wheels, are_found_in_environments_that_are_not_activated) {
  const fs::path listed = install("listed", "nvidia/cudnn/lib", kFiles[0]);
  const fs::path used = install("used/lib/python3.12/site-packages", "nvidia/cu13/lib", kFiles[0]);
  (void)folder_.write("used/bin/python3", "");
  const fs::path own = install("home/.local/lib/python3.12/site-packages", "nvidia/cu13/lib", kFiles[0]);
  set("HOME", "home");
  EXPECT_EQ(found(), own);
  set("PATH", "used/bin");
  EXPECT_EQ(found(), used);
  set("PYTHONPATH", "listed");
  EXPECT_EQ(found(), listed);
}

TEST_F(Wheels, of_other_environments_come_after_what_is_installed_for_all_programs) {
  (void)install("used/lib/python3.12/site-packages", "nvidia/cu13/lib", "libm.so.6");
  (void)folder_.write("used/bin/python3", "");
  set("PATH", "used/bin");
  static constexpr std::array kMath = {"libm.so.6"};
  EXPECT_EQ(SharedLibrary({"math", kMath}, "").path().find(folder_.path().string()), std::string::npos);
}

TEST_F(Wheels, below_the_working_folder_are_not_looked_for) {
  (void)install("env/lib/python3.12/site-packages", "nvidia/cu13/lib", kFiles[0]);
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    setenv(name, "env", 1);
    EXPECT_THROW((void)found(), core::EnvironmentError) << name;
    unsetenv(name);
  }
  fs::current_path(before);
}

TEST_F(Wheels, that_are_named_need_not_have_every_library) {
  const fs::path installed = install("env/lib/python3.12/site-packages", "nvidia/cu13/lib", kFiles[0]);
  const fs::path cudnn = install("other", "nvidia/cudnn/lib", "libcudnn.so.9").parent_path();
  set("VIRTUAL_ENV", "env");
  EXPECT_EQ(SharedLibrary(kFake, cudnn).path(), installed);
  EXPECT_THROW(SharedLibrary(kFake, cudnn.parent_path()), core::EnvironmentError) << "a folder that has none";
  const fs::path named = install("other", "nvidia/cudnn/lib", kFiles[1]);
  EXPECT_EQ(SharedLibrary(kFake, cudnn).path(), named);
}

TEST_F(Wheels, are_inspected_with_version_and_file) {
  const fs::path file = install("env/lib/python3.12/site-packages", "nvidia/cu13/lib", kFiles[0]);
  set("VIRTUAL_ENV", "env");
  const Inspection inspection = inspect_library(kFake, "");
  EXPECT_TRUE(inspection.usable) << inspection.remark;
  EXPECT_EQ(inspection.version, "13.2.3");
  EXPECT_EQ(inspection.file, file);
}

TEST_F(Wheels, that_are_missing_or_something_else_are_explained) {
  set("HOME", "nobody");
  const Inspection missing = inspect_library(kFake, "");
  EXPECT_FALSE(missing.usable);
  EXPECT_TRUE(missing.file.empty());
  EXPECT_NE(missing.remark.find("pip"), std::string::npos) << missing.remark;

  const fs::path file = install("env/lib/python3.12/site-packages", "nvidia/cu13/lib", kFiles[0]);
  set("VIRTUAL_ENV", "env");
  const Inspection strange = inspect_library({"fake", kFiles, "noSuchVersion"}, "");
  EXPECT_FALSE(strange.usable);
  EXPECT_EQ(strange.file, file);
  EXPECT_NE(strange.remark.find("has no function noSuchVersion"), std::string::npos) << strange.remark;
}

}  // namespace
}  // namespace numcheck::kernels::cuda_support
