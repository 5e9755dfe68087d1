// The worker's side: receive a case, map its memory, run it, report. Nothing else happens in this process.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "worker/arena.hpp"
#include "worker/channel.hpp"
#include "worker/pool.hpp"
#include "worker/protocol.hpp"
#include "worker/start_thread.hpp"
#include "worker/workers.hpp"

namespace numcheck::worker {
namespace {

/// Time for an idle worker to tear down its device context after the coordinator has closed the socket.
constexpr int kTeardown_ms = 2000;
constexpr int kExitFailure = static_cast<int>(core::ExitCode::environment);

/// Thrown through the executor when the coordinator closes its socket while a case is running.
struct Disconnected : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "the coordinator is gone"; }
};

/// If memory runs out, the OOM killer should choose this process rather than the coordinator or one of the user's.
void prefer_as_oom_victim() noexcept {
  const core::FileDescriptor file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kHighestScore = "1000";
  if (file.valid()) {
    [[maybe_unused]] const ssize_t written = ::write(file.get(), kHighestScore.data(), kHighestScore.size());
  }
}

/// Ends the process when the coordinator dies, even during a computation or startup.
class Watchdog {
 public:
  explicit Watchdog(int socket) : stop_(::eventfd(0, EFD_CLOEXEC)), thread_(start_watching(socket)) {}
  ~Watchdog() {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// While busy, nothing reads the socket, so only the watchdog would notice.
  void set_busy(bool busy) noexcept { busy_ = busy; }

 private:
  std::thread start_watching(int socket) {
    if (!stop_.valid()) {
      throw core::EnvironmentError("cannot create an eventfd: " + std::generic_category().message(errno));
    }
    return start_thread("to watch the coordinator", [this, socket] { watch(socket); });
  }

  void watch(int socket) {
    std::array<pollfd, 2> items{pollfd{stop_.get(), POLLIN, 0}, pollfd{socket, 0, 0}};
    while ((items[0].revents | items[1].revents) == 0) {
      ::poll(items.data(), items.size(), -1);  // a hang-up is always reported
    }
    constexpr int kStep_ms = 20;
    for (int waited_ms = 0; items[0].revents == 0; waited_ms += kStep_ms) {
      if (busy_ || waited_ms >= kTeardown_ms) {
        ::_exit(kExitFailure);
      }
      ::poll(items.data(), 1, kStep_ms);
    }
  }

  core::FileDescriptor stop_;
  std::atomic<bool> busy_ = true;
  std::thread thread_;
};

class Worker {
 public:
  Worker(Channel& channel, Watchdog& watchdog, Executor& executor, plan::OpLookup lookup)
      : channel_(channel), watchdog_(watchdog), executor_(executor), lookup_(lookup) {}

  /// Serves tasks until the coordinator closes the socket.
  void serve() {
    Message message;
    for (;;) {
      watchdog_.set_busy(false);
      const Received received = channel_.receive(message, true);
      watchdog_.set_busy(true);
      if (received != Received::message) {
        watchdog_.set_busy(false);
        return;
      }
      if (!dispatch(message)) {
        return;
      }
    }
  }

 private:
  /// Exits without cleanup: the device context is lost, and tearing it down can hang or fault.
  [[noreturn]] static void exit_now() {
    std::fflush(nullptr);
    ::_exit(kExitFailure);
  }

  /// Reports that work on `task` starts. If an earlier case has broken the device, reports that instead and exits, so
  /// that the next case is not blamed. False if the coordinator is gone.
  bool announce_start(std::uint64_t task) {
    if (const std::optional<DeviceLoss> loss = executor_.device_loss()) {
      std::ignore = channel_.send(encode(Lost{task, fmt::format("{}; {}", loss->error, loss->followed)}));
      exit_now();
    }
    return channel_.send(encode(Started{task}));
  }

  /// False if the coordinator is gone.
  bool dispatch(Message& message) {
    const FromCoordinator decoded = decode_from_coordinator(message.text, lookup_);
    if (const auto* question = std::get_if<QuestionRequest>(&decoded)) {
      return answer_question(*question);
    }
    const auto* request = std::get_if<TaskRequest>(&decoded);
    if (request == nullptr) {
      throw ProtocolError("unexpected acknowledgement");
    }
    map_arenas(*request, message);
    return run_task(*request);
  }

  /// Sends each answer at once, so that the coordinator knows which case killed the worker. False if the coordinator is
  /// gone.
  bool answer_question(const QuestionRequest& question) {
    bool connected = announce_start(question.task);
    for (auto asked = question.cases.begin(); connected && asked != question.cases.end(); ++asked) {
      const Outcome outcome = asked->error.empty() ? support_guarded(executor_, asked->c, question.options)
                                                   : Outcome{Outcome::Kind::error, asked->error, 0};
      connected = channel_.send(encode(Answer{question.task, outcome}));
      if (outcome.kind == Outcome::Kind::crashed) {
        exit_now();
      }
    }
    return connected;
  }

  void map_arenas(const TaskRequest& request, Message& message) {
    if (message.descriptors.size() != request.arenas.size()) {
      throw ProtocolError(
          fmt::format("{} arenas but {} descriptors", request.arenas.size(), message.descriptors.size()));
    }
    for (std::size_t i = 0; i < request.arenas.size(); ++i) {
      const ArenaInfo& arena = request.arenas[i];
      arenas_[arena.id] = std::make_unique<Mapping>(message.descriptors[i].get(), arena.bytes, arena.writable);
    }
  }

  std::vector<HostPort> host_ports(const TaskRequest& request) const {
    std::vector<HostPort> ports;
    for (std::size_t i = 0; i < request.ports.size(); ++i) {
      const op::Port& port = request.ports[i];
      const PortPlace& place = request.places[i];
      std::span<std::byte> bytes;
      if (place.arena != 0) {
        const auto arena = arenas_.find(place.arena);
        const std::size_t size = arena == arenas_.end() ? 0 : arena->second->size();
        if (place.bytes > size || place.offset > size - place.bytes) {
          throw ProtocolError(fmt::format("port {} lies outside its arena", port.name));
        }
        bytes = {arena->second->data() + place.offset, place.bytes};
      }
      if (bytes.size() < port.extent_bytes()) {
        throw ProtocolError(
            fmt::format("port {} needs {} bytes but has {}", port.name, port.extent_bytes(), bytes.size()));
      }
      ports.push_back({&port, bytes});
    }
    return ports;
  }

  /// Runs one task and reports its outcome. False if the coordinator is gone.
  bool run_task(const TaskRequest& request) {
    if (!announce_start(request.task)) {
      return false;
    }
    Outcome outcome{Outcome::Kind::error, request.error, 0};
    bool connected = true;
    if (request.error.empty()) {
      const RunSink sink = [&](const RunReport& report) { send_report(request.task, report, connected); };
      outcome = execute_guarded(executor_, request.c, host_ports(request), request.options, sink);
    }
    if (!connected || !channel_.send(encode(TaskEnded{request.task, outcome}))) {
      return false;
    }
    if (outcome.kind == Outcome::Kind::crashed) {
      exit_now();
    }
    return true;
  }

  /// Sends a report and waits until the coordinator has read the outputs.
  void send_report(std::uint64_t task, const RunReport& report, bool& connected) {
    Message message;
    if (connected && channel_.send(encode(RunDone{task, report})) &&
        channel_.receive(message, true) == Received::message) {
      const FromCoordinator answer = decode_from_coordinator(message.text, lookup_);
      if (const auto* ack = std::get_if<Ack>(&answer); ack != nullptr && ack->task == task) {
        return;
      }
    }
    connected = false;
    throw Disconnected();
  }

  Channel& channel_;
  Watchdog& watchdog_;
  Executor& executor_;
  plan::OpLookup lookup_;
  std::map<std::uint64_t, std::unique_ptr<Mapping>> arenas_;
};

void check_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) {
    throw core::UsageError(
        "exec --worker is only for te-numcheck itself, which passes it a socket; "
        "drop --worker to read cases from stdin");
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

int worker_main(int socket_fd, const machine::DeviceChoice& device, const ExecutorFactory& factory,
                plan::OpLookup lookup) {
  check_socket(socket_fd);
  prefer_as_oom_victim();
  ::prctl(PR_SET_NAME, "numcheck-worker");   // ps and top would show "exe"
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that output of libraries survives a crash
  Channel channel{core::FileDescriptor(socket_fd)};
  Watchdog watchdog(channel.fd());
  std::unique_ptr<Executor> executor;
  try {
    executor = factory(device);
  } catch (const core::Error& error) {  // its message needs no type name
    std::ignore = channel.send(encode(StartFailed{error.what()}));
    return kExitFailure;
  } catch (...) {
    std::ignore = channel.send(encode(StartFailed{describe_exception(std::current_exception())}));
    return kExitFailure;
  }
  if (!channel.send(encode(Hello{{executor->device(), executor->libraries()}}))) {
    return kExitFailure;
  }
  Worker(channel, watchdog, *executor, lookup).serve();
  return 0;
}

}  // namespace numcheck::worker
