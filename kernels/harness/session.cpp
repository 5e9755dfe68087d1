#include "kernels/harness/session.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/harness/port_image.hpp"

namespace numcheck::kernels::harness {
namespace {

/// Workspace patterns by launch: a kernel that reads workspace before writing it must not see the same bytes twice.
constexpr std::array<std::uint8_t, 4> kWorkspacePatterns = {kPoisonByte, 0x00, 0xAA, 0x55};

/// Device bytes are compared with host bytes in pieces of this size.
constexpr std::size_t kComparePiece = std::size_t{4} << 20;

bool is_written(const op::Port& port) {
  return port.role == op::Role::output || port.role == op::Role::amax;
}

}  // namespace

Session::Session(Backend& backend, std::span<const op::Port> ports, std::span<const worker::HostPort> host,
                 core::Buffer<std::byte>& staging, Launcher& launcher)
    : memory_(backend.memory()), staging_(staging), launcher_(launcher) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::size_t bytes = ports[i].extent_bytes();
    if (host[i].bytes.size() < bytes) {
      throw core::InternalError(fmt::format("port {} has a host buffer of {} bytes but needs {}", ports[i].name,
                                            host[i].bytes.size(), bytes));
    }
    host_.push_back(host[i].bytes.first(bytes));
    buffers_.emplace_back(memory_, bytes);
    ports_.push_back({&ports[i], buffers_.back().data()});
    kept_.emplace_back(nullptr, ReleaseBlock{&memory_});
  }
}

void Session::keep(std::size_t index) {
  kept_[index].reset();
  if (!Snapshot::holds(buffers_[index])) {
    kept_[index].reset(memory_.keep(ports_[index].data, buffers_[index].size()));
  }
}

bool Session::is_as_kept(std::size_t index) {
  return kept_[index] != nullptr && memory_.is_same(ports_[index].data, kept_[index].get(), buffers_[index].size());
}

std::span<const std::byte> Session::input_image(std::size_t index) {
  const op::Port& port = *ports_[index].port;
  const std::span<const std::byte> source = host_[index];
  if (!has_padding(port)) {
    return source;
  }
  if (padded_.size() < source.size()) {
    padded_ = core::Buffer<std::byte>(source.size());
  }
  const auto image = padded_.span().first(source.size());
  std::ranges::fill(image, std::byte{kPoisonByte});
  for_each_run(port, [&](std::size_t offset, std::size_t bytes) {
    std::memcpy(image.data() + offset, source.data() + offset, bytes);
  });
  return image;
}

void Session::upload_inputs() {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (!is_written(*ports_[i].port) && buffers_[i].size() != 0) {
      memory_.upload(ports_[i].data, input_image(i));
    }
  }
  inputs_kept_ = false;
}

GuardedBuffer& Session::workspace_for(const Algorithm& algorithm) {
  if (!workspace_ || workspace_->size() != algorithm.workspace_bytes) {
    workspace_.reset();
    try {
      workspace_.emplace(memory_, algorithm.workspace_bytes);
    } catch (
        const core::EnvironmentError&) {  // no memory left: that of copies, without which comparisons are on the host
      std::ranges::for_each(kept_, [](DeviceBlock& copy) { copy.reset(); });
      workspace_.emplace(memory_, algorithm.workspace_bytes);
    }
  }
  return *workspace_;
}

void Session::restore_guards() {
  for (GuardedBuffer& buffer : buffers_) {
    buffer.restore_guards();
  }
  if (workspace_) {
    workspace_->restore_guards();
  }
}

int Session::runs_at_once(const Algorithm& algorithm) const {
  return std::ranges::all_of(buffers_, &Snapshot::holds) ? std::max(1, kLaunchesAtOnce / algorithm.launches) : 1;
}

std::vector<double> Session::launch(const Algorithm& algorithm, int first, int count, std::string_view fault) {
  snapshots_.resize(std::max(snapshots_.size(), static_cast<std::size_t>(count)));
  std::ranges::for_each(snapshots_, &Snapshot::clear);
  const ReadScope reads(memory_);
  std::vector<DeviceSeconds> measured;
  for (int i = 0; i < count; ++i) {
    measured.push_back(start(algorithm, first + i, fault));
    take_snapshot(snapshots_[static_cast<std::size_t>(i)]);
  }
  launcher_.finish(memory_);
  look_at(0);
  std::vector<double> seconds;
  std::ranges::transform(measured, std::back_inserter(seconds), [](const DeviceSeconds& run) { return run(); });
  return seconds;
}

DeviceSeconds Session::start(const Algorithm& algorithm, int repeat, std::string_view fault) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (is_written(*ports_[i].port)) {
      buffers_[i].fill(ports_[i].port->role == op::Role::amax ? 0 : kPoisonByte);
    }
  }
  GuardedBuffer& workspace = workspace_for(algorithm);
  workspace.fill(kWorkspacePatterns.at(static_cast<std::size_t>(repeat) % kWorkspacePatterns.size()));
  for (std::size_t i = 0; i < ports_.size() && !inputs_kept_; ++i) {  // after all that the run itself needs
    if (!is_written(*ports_[i].port)) {
      keep(i);
    }
  }
  inputs_kept_ = true;
  DeviceSeconds seconds = launcher_.start(algorithm, fmt::format("run {}", repeat + 1), ports_, workspace.data());
  if (!fault.empty()) {
    plant_memory_fault(fault, repeat, memory_, ports_, workspace.data() + workspace.size());
  }
  return seconds;
}

void Session::take_snapshot(Snapshot& snapshot) {
  std::vector<const GuardedBuffer*> buffers;
  std::ranges::transform(buffers_, std::back_inserter(buffers), [](const GuardedBuffer& buffer) { return &buffer; });
  if (workspace_) {
    buffers.push_back(&*workspace_);
  }
  snapshot.take(memory_, buffers);
}

std::string Session::guard_damage() const {
  const Snapshot& seen = snapshots_.at(run_);
  for (std::size_t i = 0; i < buffers_.size() + (workspace_ ? 1 : 0); ++i) {
    if (const std::string damage = harness::guard_damage(seen.guard_before(i), seen.guard_after(i)); !damage.empty()) {
      return fmt::format("{}: {}", i < ports_.size() ? ports_[i].port->name : "workspace", damage);
    }
  }
  return {};
}

void Session::download_outputs(bool keep) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (!is_written(*ports_[i].port) || buffers_[i].size() == 0) {
      continue;
    }
    if (const auto contents = contents_of(i); !contents.empty()) {
      std::ranges::copy(contents, host_[i].begin());
    } else {
      memory_.download(host_[i], ports_[i].data);
    }
    if (keep) {
      this->keep(i);
    }
  }
}

std::string Session::changed_padding() const {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const op::Port& port = *ports_[i].port;
    if (!is_written(port) || !has_padding(port)) {
      continue;
    }
    if (const auto offset = first_changed_padding(port, host_[i], kPoisonByte)) {
      return fmt::format("{}: padding at byte {} of {} overwritten, now 0x{:02x}", port.name, *offset,
                         buffers_[i].size(), std::to_integer<unsigned>(host_[i][*offset]));
    }
  }
  return {};
}

std::span<const std::byte> Session::contents_of(std::size_t index) const {
  return run_ < snapshots_.size() ? snapshots_[run_].contents(index) : std::span<const std::byte>();
}

std::span<const std::byte> Session::read_back(std::size_t index, std::size_t begin, std::size_t bytes) {
  if (const auto contents = contents_of(index); !contents.empty()) {
    return contents.subspan(begin, bytes);
  }
  if (staging_.size() < bytes) {
    staging_ = core::Buffer<std::byte>(bytes);
  }
  const std::span<std::byte> staged = staging_.span().first(bytes);
  memory_.download(staged, ports_[index].data + begin);
  return staged;
}

std::optional<std::size_t> Session::first_difference(std::size_t index, bool elements_only) {
  const op::Port& port = *ports_[index].port;
  const auto wanted = is_written(port) ? std::span<const std::byte>(host_[index]) : input_image(index);
  for (std::size_t begin = 0; begin < wanted.size(); begin += kComparePiece) {
    const auto expected = wanted.subspan(begin, std::min(kComparePiece, wanted.size() - begin));
    const auto got = read_back(index, begin, expected.size());
    if (std::memcmp(got.data(), expected.data(), got.size()) == 0) {
      continue;
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] != expected[i] && (!elements_only || is_element_byte(port, begin + i))) {
        return begin + i;
      }
    }
  }
  return std::nullopt;
}

std::string Session::changed_input() {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (is_written(*ports_[i].port) || is_as_kept(i)) {
      continue;
    }
    if (const auto offset = first_difference(i, false)) {
      return fmt::format("{}: byte {} of {} changed during the run", ports_[i].port->name, *offset, buffers_[i].size());
    }
    if (kept_[i] != nullptr) {
      return fmt::format("{}: a copy of it that no kernel knows of changed during the run", ports_[i].port->name);
    }
  }
  return {};
}

void Session::compare_outputs(std::vector<worker::OutputDigest>& outputs) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const auto output = std::ranges::find(outputs, ports_[i].port->name, &worker::OutputDigest::port);
    if (output != outputs.end() && output->repeats && !is_as_kept(i) && first_difference(i, true)) {
      output->repeats = false;
    }
  }
}

std::vector<worker::OutputDigest> Session::digests() {
  std::vector<worker::OutputDigest> digests;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (is_written(*ports_[i].port)) {
      digests.push_back({std::string(ports_[i].port->name), digest_elements(*ports_[i].port, host_[i], staging_)});
    }
  }
  return digests;
}

}  // namespace numcheck::kernels::harness
