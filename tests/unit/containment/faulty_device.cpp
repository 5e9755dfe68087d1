#include "faulty_device.hpp"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "catalog.hpp"
#include "core/error.hpp"
#include "kernels/loader/backend_set.hpp"
#include "kernels/loader/executor.hpp"
#include "kernels/sim/sim.hpp"
#include "op/gemm.hpp"

namespace numcheck::containment {
namespace {

using kernels::Algorithm;
using kernels::Call;

/// The device's state: counts of calls, and whether it still works.
class Pulse {
 public:
  explicit Pulse(const Fault& fault) : fault_(fault) {}

  /// Every call to the device goes through here. Throws from the faulty call on; the message names the current call.
  void call(std::string_view name) {
    count(name);
    if (dead_) {
      throw core::EnvironmentError(fmt::format("{} failed: an illegal memory access was encountered", name));
    }
  }
  /// The same for calls that report nothing.
  void call_quietly(std::string_view name) { count(name); }

  void begin_case(std::int64_t m) { counting_ = fault_.m == m; }
  void end_case() { counting_ = false; }
  void die() { dead_ = true; }

 private:
  void count(std::string_view) {
    if (counting_ && ++calls_ == fault_.call) {
      dead_ = true;
    }
  }

  Fault fault_;
  bool counting_ = false;
  bool dead_ = false;
  int calls_ = 0;
};

class FaultyMemory : public kernels::DeviceMemory {
 public:
  FaultyMemory(Pulse& pulse, kernels::DeviceMemory& memory) : pulse_(pulse), memory_(memory) {}

  [[nodiscard]] std::byte* allocate(std::size_t bytes) override {
    pulse_.call("allocate");
    return memory_.allocate(bytes);
  }
  void release(std::byte* pointer) noexcept override {
    pulse_.call_quietly("release");
    memory_.release(pointer);
  }
  void upload(std::byte* device, std::span<const std::byte> host) override {
    pulse_.call("upload");
    memory_.upload(device, host);
  }
  void download(std::span<std::byte> host, const std::byte* device) override {
    pulse_.call("download");
    memory_.download(host, device);
  }
  void fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) override {
    pulse_.call("fill");
    memory_.fill(device, pattern, bytes);
  }
  void synchronize() override { pulse_.call("synchronize"); }

 private:
  Pulse& pulse_;
  kernels::DeviceMemory& memory_;
};

class FaultyBackend : public kernels::Backend {
 public:
  FaultyBackend(Pulse& pulse, const machine::Device& device)
      : pulse_(pulse), device_(device), sim_(kernels::sim::make_backend(90)), memory_(pulse, sim_->memory()) {}

  [[nodiscard]] std::string_view name() const override { return "cublaslt"; }
  [[nodiscard]] const machine::Device& device() const override { return device_; }
  [[nodiscard]] kernels::DeviceMemory& memory() override { return memory_; }

  [[nodiscard]] kernels::Support supports(const Call& call) override {
    pulse_.begin_case(op::from_params<op::GemmParams>(call.c->params).m);
    pulse_.call("heuristic");
    return sim_->supports(call);
  }

  [[nodiscard]] std::vector<Algorithm> algorithms(const Call& call) override {
    pulse_.call("heuristic");
    std::vector<Algorithm> list = sim_->algorithms(call);
    for (Algorithm& algorithm : list) {
      algorithm.details.emplace_back("pid", std::to_string(::getpid()));
      algorithm.launch = [this, launch = std::move(algorithm.launch)](auto ports, std::byte* workspace) {
        pulse_.call("record");
        pulse_.call_quietly("launch");  // a fault in a kernel surfaces later
        kernels::DeviceSeconds seconds = launch(ports, workspace);
        pulse_.call("record");
        return [this, seconds = std::move(seconds)] {
          pulse_.call("event synchronize");
          return seconds();
        };
      };
    }
    return list;
  }

 private:
  Pulse& pulse_;
  machine::Device device_;
  std::unique_ptr<kernels::Backend> sim_;
  FaultyMemory memory_;
};

class FaultyBackends : public kernels::loader::CudaBackends {
 public:
  explicit FaultyBackends(Pulse& pulse) : backend_(pulse, device_) {}
  [[nodiscard]] const machine::Device& device() const override { return device_; }
  [[nodiscard]] kernels::DeviceMemory& memory() override { return backend_.memory(); }
  [[nodiscard]] kernels::Backend* find(std::string_view name) override {
    return name == "cublaslt" ? &backend_ : nullptr;
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> libraries() override {
    return {{"cublaslt", "13.1.0"}};
  }

 private:
  machine::Device device_{.name = "faulty", .sm = 90, .uuid = "GPU-1", .driver = "580.65"};
  FaultyBackend backend_;
};

/// Counts until the case boundary checks the device for the last time.
class FaultyExecutor : public worker::Executor {
 public:
  explicit FaultyExecutor(const Fault& fault)
      : fault_(fault),
        pulse_(fault),
        inner_(kernels::loader::make_executor(std::make_unique<FaultyBackends>(pulse_), app::bindings())) {}

  [[nodiscard]] const machine::Device& device() const override { return inner_->device(); }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> libraries() const override {
    return inner_->libraries();
  }
  [[nodiscard]] worker::Support supports(const plan::Case& c, const worker::ExecuteOptions& options) override {
    at_boundary_ = true;
    return inner_->supports(c, options);
  }
  [[nodiscard]] worker::Outcome execute(const plan::Case& c, std::span<const worker::HostPort> ports,
                                        const worker::ExecuteOptions& options, const worker::RunSink& sink) override {
    at_boundary_ = true;
    ++cases_;
    return inner_->execute(c, ports, options, sink);
  }
  [[nodiscard]] std::optional<worker::DeviceLoss> device_loss() noexcept override {
    if (!at_boundary_ && fault_.between_cases != 0 && cases_ == fault_.between_cases) {
      pulse_.die();
    }
    const auto loss = inner_->device_loss();
    pulse_.end_case();
    at_boundary_ = false;
    return loss;
  }

 private:
  Fault fault_;
  Pulse pulse_;
  std::unique_ptr<worker::Executor> inner_;
  bool at_boundary_ = false;  ///< the next check of the device ends a case
  int cases_ = 0;
};

}  // namespace

std::unique_ptr<worker::Executor> make_faulty_executor(const Fault& fault) {
  return std::make_unique<FaultyExecutor>(fault);
}

}  // namespace numcheck::containment
