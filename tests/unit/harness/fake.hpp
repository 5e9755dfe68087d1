// A backend in host memory that misbehaves as the test chooses, to see whether the harness notices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "kernels/contract/backend.hpp"
#include "kernels/harness/harness.hpp"
#include "op/gemm.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::kernels::test {

/// Host memory, 256-byte aligned. Counts what is allocated, and can be exhausted or dead.
class FakeMemory : public DeviceMemory {
 public:
  ~FakeMemory() override;
  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* pointer) noexcept override;
  void upload(std::byte* device, std::span<const std::byte> host) override;
  void download(std::span<std::byte> host, const std::byte* device) override;
  /// Reads at once and delivers when it is synchronized, as a GPU does.
  void download_at_sync(std::span<const DeviceRead> reads) override;
  void fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) override;
  [[nodiscard]] std::byte* keep(const std::byte* device, std::size_t bytes) override;
  [[nodiscard]] bool is_same(const std::byte* a, const std::byte* b, std::size_t bytes) override;
  void synchronize() override;

  struct Undelivered {
    std::span<std::byte> host;
    std::vector<std::byte> bytes;
  };
  std::vector<Undelivered> undelivered;
  std::set<std::byte*> live;
  std::size_t capacity = static_cast<std::size_t>(-1);  ///< allocations of more bytes fail
  bool dead = false;                                    ///< synchronize throws, as after a CUDA fault
  int sync_errors = 0;                                  ///< synchronize throws this many times, then works
  int fills_left = -1;                                  ///< fills that work before all fail; -1: all work
  bool keeps = false;                                   ///< keep() gives copies
  std::vector<std::byte*> kept;                         ///< those that live
  std::size_t kept_ever = 0;                            ///< that it has given
  bool full_beside_copies = false;                      ///< nothing else can be allocated while they live
  std::size_t downloaded = 0;                           ///< bytes
};

/// How a fake product rounds its operands before it multiplies.
struct OperandRounding {
  core::Dtype dtype = core::Dtype::fp32;
  core::Rounding rounding = core::Rounding::nearest_even;
};

/// Called after the product of launch number `launch` of an algorithm (from 0, classification launches included).
using Misbehaviour = std::function<void(std::span<const PortMemory> ports, std::byte* workspace, int launch)>;

class FakeBackend : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] const machine::Device& device() const override { return device_; }
  [[nodiscard]] Support supports(const Call& call) override;
  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override;
  [[nodiscard]] DeviceMemory& memory() override { return memory_; }

  FakeMemory memory_;
  machine::Device device_{.name = "fake", .sm = 90};
  OperandRounding first, second;
  std::size_t workspace_bytes = 1000;  ///< of algorithm 0; each further one asks for 300 less
  int algorithm_count = 1;
  std::string refusal;  ///< if not empty, supports() refuses with this reason
  Misbehaviour misbehave;
  std::function<Shown()> shown;  ///< of every algorithm
  int misbehaving_algorithm = 0;
  std::string seen_inject;  ///< what the harness passed on
  int launches = 0;
};

/// GEMM parameters with these sizes and defaults otherwise.
[[nodiscard]] op::GemmParams shape(std::int64_t m, std::int64_t n, std::int64_t k);

/// A case of gemm with its host buffers; inputs are small integers that depend on the element.
struct TestCase {
  TestCase(const op::GemmParams& params, std::string_view mode);
  TestCase(const op::Op& op, const op::Params& params, std::string_view mode);  ///< of grouped_gemm, too
  [[nodiscard]] const op::Port& port(std::string_view name) const;
  [[nodiscard]] double output(std::int64_t row, std::int64_t col) const;
  [[nodiscard]] std::vector<worker::RunReport> run(FakeBackend& backend, const worker::ExecuteOptions& options = {});

  plan::Case c;
  std::vector<op::Port> ports;
  std::map<std::string, std::vector<std::byte>, std::less<>> bytes;
  std::vector<worker::HostPort> host;
  worker::Outcome outcome;
  harness::Harness harness;
};

[[nodiscard]] const PortMemory& memory_named(std::span<const PortMemory> ports, std::string_view name);

}  // namespace numcheck::kernels::test
