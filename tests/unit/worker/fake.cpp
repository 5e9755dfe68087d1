#include "fake.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "op/field.hpp"
#include "worker/channel.hpp"

namespace numcheck::worker::fake {
namespace {

struct FakeParams {
  std::int64_t n = 16;
  std::string act = "add";

  template <class V>
  void describe(V& v) {
    v.integer("n", "n", n, {.minimum = 0, .maximum = 1e9, .doc = "elements"});
    v.choice("act", "act", act,
             {"add",           "several",       "sigkill", "segfault",     "abort",       "exit7",       "hang",
              "spin",          "late_hang",     "print",   "print_much",   "corrupt",     "too_long",    "wrong_task",
              "nan_time",      "unknown_port",  "throw",   "throw_odd",    "lost_device", "unsupported", "environment",
              "no_second_end", "closes_socket", "refused", "writes_input", "asked_kill",  "asked_hang",  "asked_throw",
              "asked_lie",     "asked_long",    "slow"},
             "what the device does");
  }
};

constexpr std::array<std::string_view, 1> kModes{"fp32"};

const std::vector<op::Field>& fake_fields() {
  static const std::vector<op::Field> fields = [] {
    op::FieldCollector collector;
    FakeParams params;
    params.describe(collector);
    return collector.fields;
  }();
  return fields;
}

FakeParams load(const op::Params& values) {
  FakeParams params;
  op::FieldLoader loader(values);
  params.describe(loader);
  return params;
}

op::Port vector_port(std::string_view name, op::Role role, std::int64_t n) {
  op::Port port;
  port.name = name;
  port.role = role;
  port.rows = 1;
  port.cols = n;
  port.ld = n;
  port.batch_stride = n;
  port.doc = "a vector";
  return port;
}

std::vector<op::Port> fake_ports(const op::Params& values, const op::Mode&) {
  const std::int64_t n = load(values).n;
  return {vector_port("x", op::Role::input, n), vector_port("y", op::Role::output, n)};
}

[[noreturn]] void sleep_forever() {
  for (;;) {
    ::sleep(1000);
  }
}

[[noreturn]] void compute_forever() {
  std::atomic<std::uint64_t> count = 0;
  for (;;) {
    ++count;
  }
}

struct OddError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class FakeExecutor final : public Executor {
 public:
  FakeExecutor() {
    device_.name = "fake";
    device_.sm = 90;
    device_.simulated = true;
    device_.uuid = "fake-0";
  }
  const machine::Device& device() const override { return device_; }
  std::vector<std::pair<std::string, std::string>> libraries() const override { return {{"fakelib", "1.2.3"}}; }

  Support supports(const plan::Case& c, const ExecuteOptions& options) override {
    const std::string act = load(c.params).act;
    if (act == "asked_kill") {
      ::kill(::getpid(), SIGKILL);
    } else if (act == "asked_hang") {
      sleep_forever();
    } else if (act == "asked_throw") {
      throw core::EnvironmentError("libfake.so is missing");
    } else if (act == "asked_lie") {
      send_raw(R"({"type":"answer","task":4711,"outcome":{"kind":"done","reason":"","device_s":0}})");
    } else if (act == "asked_long") {
      return {false, std::string(100'000, '"')};
    } else if (act == "refused") {
      return {false, fmt::format("process {} cannot do {}", ::getpid(), options.inject)};
    }
    return {};
  }

  Outcome execute(const plan::Case& c, std::span<const HostPort> ports, const ExecuteOptions&,
                  const RunSink& sink) override {
    const std::string act = load(c.params).act;
    if (act == "writes_input") {
      ports[0].bytes[0] = std::byte{1};
    }
    before(act);
    const int runs = act == "several" ? 3 : 1;
    for (int run = 0; run < runs; ++run) {
      sink(compute(ports, run, act));
    }
    after(act);
    if (act == "unsupported") {
      return {Outcome::Kind::unsupported, "the fake device cannot", 0};
    }
    if (act == "lost_device") {
      return {Outcome::Kind::crashed, "an illegal memory access was encountered", 0};
    }
    return {Outcome::Kind::done, "", 0.5};
  }

 private:
  static void send_raw(std::string_view text) { ::send(kWorkerSocketFd, text.data(), text.size(), 0); }

  static void before(const std::string& act) {
    if (act == "sigkill") {
      ::kill(::getpid(), SIGKILL);
    } else if (act == "segfault") {
      ::signal(SIGSEGV, SIG_DFL);
      ::raise(SIGSEGV);
    } else if (act == "abort") {
      std::fprintf(stderr, "first line\nassertion `a == b' failed\n");
      std::abort();
    } else if (act == "exit7") {
      std::_Exit(7);
    } else if (act == "hang") {
      sleep_forever();
    } else if (act == "slow") {
      ::usleep(1'000'000);
    } else if (act == "spin") {
      compute_forever();
    } else if (act == "print") {
      std::printf("{\"type\":\"end\",\"task\":1}\nlibraries print on stdout\n");
    } else if (act == "print_much") {
      const std::string line(1000, 'x');
      for (int i = 0; i < 5000; ++i) {
        std::printf("%s\n", line.c_str());
      }
    } else if (act == "throw") {
      throw core::EnvironmentError("out of fake memory");
    } else if (act == "throw_odd") {
      throw OddError("odd");
    } else if (act == "corrupt") {
      send_raw("{\"type\": \"run\", \xff nonsense");
    } else if (act == "too_long") {
      send_raw(std::string(kMaxMessageBytes + 1, ' '));
    } else if (act == "wrong_task") {
      send_raw(R"({"type":"started","task":4711})");
    } else if (act == "closes_socket") {
      ::shutdown(kWorkerSocketFd, SHUT_RDWR);
    }
  }

  static void after(const std::string& act) {
    if (act == "slow") {
      ::usleep(300'000);
    }
    if (act == "late_hang") {
      sleep_forever();
    }
    if (act == "no_second_end") {
      send_raw(R"({"type":"end","task":1,"outcome":{"kind":"timeout","reason":"","device_s":0}})");
    }
  }

  static RunReport compute(std::span<const HostPort> ports, int run, const std::string& act) {
    const std::size_t n = ports[0].bytes.size() / sizeof(float);
    for (std::size_t i = 0; i < n; ++i) {
      float value = 0;
      std::memcpy(&value, ports[0].bytes.data() + i * sizeof(float), sizeof(float));
      value += static_cast<float>(run);
      std::memcpy(ports[1].bytes.data() + i * sizeof(float), &value, sizeof(float));
    }
    RunReport report;
    report.label = fmt::format("run {}", run);
    const char* variable = std::getenv("NVIDIA_TF32_OVERRIDE");
    report.details = {{"pid", std::to_string(::getpid())},
                      {"group", std::to_string(::getpgrp())},
                      {"override", variable == nullptr ? "unset" : variable},
                      {"address", fmt::format("{}", static_cast<void*>(ports[0].bytes.data()))}};
    report.workspace_bytes = 77;
    report.observed = model::PrecisionClass::fp32;
    report.device_s = act == "nan_time" ? std::nan("") : 0.25;
    report.outputs = {{act == "unknown_port" ? "z" : "y", core::digest_of(std::span<const std::byte>(ports[1].bytes))}};
    return report;
  }

  machine::Device device_;
};

}  // namespace

const op::Op& fake_op() {
  static const op::Op op{
      .name = "fake",
      .summary = "a device that misbehaves",
      .formula = "y = x + run",
      .source = "this test",
      .fields = &fake_fields,
      .modes = kModes,
      .ports = &fake_ports,
      .check = [](const op::Params&, const op::Mode&) { return std::vector<std::string>(); },
      .exact_plan = [](const op::Params&, const op::Mode&) { return op::ExactPlan{}; },
      .flops = [](const op::Params&) { return 1.0; },
      .reduces_along_rows = [](const op::Params&, std::string_view) { return false; },
  };
  return op;
}

/// The same op, but decoding a case of 1313 elements ends the process: before it reports that it began.
const op::Op& deadly_op() {
  static const op::Op op = [] {
    op::Op deadly = fake_op();
    deadly.check = [](const op::Params& params, const op::Mode&) {
      if (load(params).n == 1313) {
        std::_Exit(3);
      }
      return std::vector<std::string>();
    };
    return deadly;
  }();
  return op;
}

const op::Op* lookup(std::string_view name) {
  return name == "fake" ? &fake_op() : nullptr;
}

std::unique_ptr<Executor> make_executor(const machine::DeviceChoice&) {
  return std::make_unique<FakeExecutor>();
}

int serve(const std::vector<std::string>& arguments) {
  ExecutorFactory factory = &make_executor;
  plan::OpLookup lookup_op = &lookup;
  for (const std::string& argument : arguments) {
    if (argument == "--start=hang") {
      sleep_forever();
    } else if (argument == "--start=exit") {
      std::fprintf(stderr, "libfake.so: cannot open shared object file\n");
      return 5;
    } else if (argument == "--start=invalid") {
      ::send(kWorkerSocketFd, "what?", 5, 0);
      sleep_forever();
    } else if (argument == "--start=old") {
      constexpr std::string_view kOld = R"({"type":"hello","protocol":0,"device":{},"libraries":[]})";
      ::send(kWorkerSocketFd, kOld.data(), kOld.size(), 0);
      sleep_forever();
    } else if (argument == "--deaf") {
      lookup_op = [](std::string_view) -> const op::Op* { return &deadly_op(); };
    } else if (argument == "--start=fail") {
      factory = [](const machine::DeviceChoice&) -> std::unique_ptr<Executor> {
        throw core::EnvironmentError("cuda:7 does not exist: this machine has 1 device");
      };
    }
  }
  return worker_main(kWorkerSocketFd, {}, factory, lookup_op);
}

}  // namespace numcheck::worker::fake
