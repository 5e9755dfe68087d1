// Tests that ask cuDNN about devices that this machine lacks.
#pragma once

#include <dlfcn.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "device_json.hpp"
#include "kernels/cudnn/engines.hpp"

namespace numcheck::kernels::cudnn::test {

/// Version 9.8 introduced devices given by properties; 9.11 is the first whose manual describes them.
inline constexpr std::size_t kFirstVersion = 91100;
inline constexpr std::size_t kKnownVersion = 919;  ///< the one that device_json was written for

/// cuDNN, or why it cannot be used.
struct Installed {
  std::unique_ptr<Library> library;
  std::string problem;
};

inline const Installed& installed() {
  static const Installed found = [] {
    Installed made;
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
#ifdef STUB_LIBCUDA
      dlopen(STUB_LIBCUDA, RTLD_NOW | RTLD_GLOBAL);  // cuDNN finds it by its soname
#else
      made.problem = "no usable cuDNN: neither a driver nor the toolkit's stub of one is here";
      return made;
#endif
    }
    try {
      made.library = std::make_unique<Library>("");
      if (made.library->get_version() < kFirstVersion) {
        made.problem = "no usable cuDNN: " + made.library->version() + " is older than 9.11";
      }
    } catch (const core::EnvironmentError& error) {
      made.problem = std::string("no usable cuDNN: ") + error.what();
    }
    return made;
  }();
  return found;
}

/// The parameter is the device's architecture, one of kKnownDevices.
class Deviceless : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!installed().problem.empty()) {
      GTEST_SKIP() << installed().problem;
    }
    try {
      const std::string json = device_json(GetParam());
      device_.emplace(library(), Kind::device_properties);
      device_->set_all(Attribute::device_json, std::span<const char>(json));
      device_->finalize();
    } catch (const CudnnError& error) {
      // The keys are undocumented, and other versions may need others.
      if (library().get_version() / 100 == kKnownVersion) {
        throw;
      }
      GTEST_SKIP() << "no usable cuDNN: " << library().version() << " does not take the device: " << error.what();
    }
  }

  [[nodiscard]] static const Library& library() { return *installed().library; }
  [[nodiscard]] Target target() const { return {nullptr, &*device_}; }

 private:
  std::optional<Descriptor> device_;
};

}  // namespace numcheck::kernels::cudnn::test
