// A made-up op, y = x, on a device that misbehaves on request: for tests of the coordinator's pipeline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prepare/catalog.hpp"
#include "run/pipeline.hpp"
#include "worker/execution.hpp"

namespace numcheck::run::copy {

/// n numbers; `pad` is a storage-only parameter.
struct CopyParams {
  std::int64_t n = 4;
  std::int64_t pad = 0;
  template <class V>
  void describe(V& v) {
    v.integer("n", "n", n, {.minimum = 0, .maximum = 1 << 20, .doc = "numbers"});
    v.integer("pad", "pad", pad, {.minimum = 0, .maximum = 64, .doc = "padding", .storage_only = true});
  }
};

/// How long each reference takes.
inline std::atomic<std::chrono::milliseconds> reference_delay = std::chrono::milliseconds(0);
/// Steps of 10 ms each that a reference of more than 1000 numbers takes besides, between which it can be stopped.
inline std::atomic<std::size_t> reference_steps = 0;

[[nodiscard]] std::vector<prepare::CatalogRow> copy_catalog();

/// A case's first tag says what the device does with it: "refused" (by supports and by execute), "support_throws",
/// "unsupported" (when run only), "throws", "wrong", "out_of_bounds", "racy", "slow" (50 ms).
[[nodiscard]] plan::Case make_case(std::int64_t n, std::string_view mode, std::vector<std::string> tags = {},
                                   std::string_view distribution = "normal");

class CopyDevice final : public worker::Executor {
 public:
  static inline std::atomic<int> executed = 0;  ///< calls of execute

  const machine::Device& device() const override { return device_; }
  std::vector<std::pair<std::string, std::string>> libraries() const override { return {{"libcopy", "1.2.3"}}; }
  worker::Support supports(const plan::Case& c, const worker::ExecuteOptions& options) override;
  worker::Outcome execute(const plan::Case& c, std::span<const worker::HostPort> ports,
                          const worker::ExecuteOptions& options, const worker::RunSink& sink) override;

 private:
  machine::Device device_{.name = "copier", .sm = 90, .simulated = true};
};

/// Options of a pipeline that runs on a CopyDevice in this process.
[[nodiscard]] PipelineOptions in_process();

}  // namespace numcheck::run::copy
