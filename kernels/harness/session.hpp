// One case in device memory: its buffers and their guards, and what happens to them around a launch.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "kernels/contract/backend.hpp"
#include "kernels/contract/device_block.hpp"
#include "kernels/harness/guarded_buffer.hpp"
#include "kernels/harness/launcher.hpp"
#include "kernels/harness/memory_fault.hpp"
#include "kernels/harness/snapshot.hpp"
#include "worker/execution.hpp"

namespace numcheck::kernels::harness {

class Session {
 public:
  /// `host` is parallel to `ports`; buffers may be larger than the ports need. Throws core::InternalError if one is
  /// smaller, and what DeviceMemory::allocate throws.
  Session(Backend& backend, std::span<const op::Port> ports, std::span<const worker::HostPort> host,
          core::Buffer<std::byte>& staging, Launcher& launcher);

  [[nodiscard]] std::span<const PortMemory> ports() const { return ports_; }
  /// A workspace of exactly the requested size, so that its guard starts where the algorithm must stop.
  [[nodiscard]] GuardedBuffer& workspace_for(const Algorithm& algorithm);
  [[nodiscard]] DeviceMemory& memory() { return memory_; }
  [[nodiscard]] Launcher& launcher() { return launcher_; }
  [[nodiscard]] core::Buffer<std::byte>& staging() { return staging_; }

  void upload_inputs();
  /// Runs that may be started without waiting for the device between them: more than one if the buffers are small.
  [[nodiscard]] int runs_at_once(const Algorithm& algorithm) const;
  /// Starts runs `first` to `first + count - 1`, reads back after each what the checks below look at, and waits for the
  /// device once. Device seconds of each. Precondition: count <= runs_at_once(algorithm).
  [[nodiscard]] std::vector<double> launch(const Algorithm& algorithm, int first, int count, std::string_view fault);
  /// Chooses the run of the last launch() that the checks look at: 0 is its first.
  void look_at(int run) { run_ = static_cast<std::size_t>(run); }
  [[nodiscard]] std::string guard_damage() const;
  [[nodiscard]] std::string changed_input();
  /// `keep`: later runs are compared with this one.
  void download_outputs(bool keep);
  [[nodiscard]] std::string changed_padding() const;
  /// Notes outputs that differ from those that were downloaded, and kept.
  void compare_outputs(std::vector<worker::OutputDigest>& outputs);
  [[nodiscard]] std::vector<worker::OutputDigest> digests();
  void restore_guards();

 private:
  [[nodiscard]] DeviceSeconds start(const Algorithm& algorithm, int repeat, std::string_view fault);
  void take_snapshot(Snapshot& snapshot);
  /// Copies a port that no snapshot holds, on the device; not if memory is short.
  void keep(std::size_t index);
  /// Whether a port is what was kept of it; false if nothing was.
  [[nodiscard]] bool is_as_kept(std::size_t index);
  [[nodiscard]] std::optional<std::size_t> first_difference(std::size_t index, bool elements_only);
  /// The host image of an input as it is on the device: padding replaced by poison.
  [[nodiscard]] std::span<const std::byte> input_image(std::size_t index);
  /// A port as the run left it; empty if the snapshot does not hold it.
  [[nodiscard]] std::span<const std::byte> contents_of(std::size_t index) const;
  /// Bytes of a port as the run left them; valid until the next call.
  [[nodiscard]] std::span<const std::byte> read_back(std::size_t index, std::size_t begin, std::size_t bytes);

  DeviceMemory& memory_;
  std::vector<std::span<std::byte>> host_;
  core::Buffer<std::byte>& staging_;
  Launcher& launcher_;
  core::Buffer<std::byte> padded_;
  std::vector<GuardedBuffer> buffers_;
  std::vector<DeviceBlock> kept_;  ///< parallel to buffers_; null: compared on the host
  bool inputs_kept_ = false;       ///< or tried to
  std::optional<GuardedBuffer> workspace_;
  std::vector<Snapshot> snapshots_;  ///< of buffers_, then the workspace, after each run of the last launch
  std::size_t run_ = 0;              ///< whose snapshot the checks look at
  std::vector<PortMemory> ports_;
};

}  // namespace numcheck::kernels::harness
