// The worker's side: receive a case, map its memory, run it, answer. Nothing else happens in this process.
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

/// After the coordinator has let go, an idle worker may tear its device context down for this long.
constexpr int kTeardown_ms = 2000;
constexpr int kFailed = static_cast<int>(core::ExitCode::environment);

/// Thrown through the executor when the coordinator has closed its socket in the middle of a case.
struct Disconnected : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "the coordinator has gone"; }
};

/// When memory runs out, the system shall take this process and not the coordinator or something of the user's.
void volunteer_for_oom() noexcept {
  const core::FileDescriptor file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kFirst = "1000";
  if (file.valid()) {
    [[maybe_unused]] const ssize_t written = ::write(file.get(), kFirst.data(), kFirst.size());
  }
}

/// Ends the process when the coordinator dies, even in the middle of a computation or of a start.
class Watchdog {
 public:
  explicit Watchdog(int socket) : stop_(::eventfd(0, EFD_CLOEXEC)), thread_(start_watching(socket)) {}
  ~Watchdog() {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Busy: nobody reads the socket, so nobody else would notice.
  void set_busy(bool busy) noexcept { busy_ = busy; }

 private:
  std::thread start_watching(int socket) {
    if (!stop_.valid()) {
      throw core::EnvironmentError("cannot make an eventfd: " + std::generic_category().message(errno));
    }
    return start_thread("that watches the coordinator", [this, socket] { watch(socket); });
  }

  void watch(int socket) {
    std::array<pollfd, 2> items{pollfd{stop_.get(), POLLIN, 0}, pollfd{socket, 0, 0}};
    while ((items[0].revents | items[1].revents) == 0) {
      ::poll(items.data(), items.size(), -1);  // a hang-up is always reported
    }
    constexpr int kStep_ms = 20;
    for (int waited_ms = 0; items[0].revents == 0; waited_ms += kStep_ms) {
      if (busy_ || waited_ms >= kTeardown_ms) {
        ::_exit(kFailed);
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
      if (!heed(message)) {
        return;
      }
    }
  }

 private:
  /// The device context is lost. Tearing it down can hang or fault; the system takes everything back as it is.
  [[noreturn]] static void leave() {
    std::fflush(nullptr);
    ::_exit(kFailed);
  }

  /// Tells that work on `task` begins, unless what came before has cost the device: then the next case must not pay for
  /// it. False if the coordinator has gone.
  bool begin(std::uint64_t task) {
    if (const std::optional<DeviceLoss> loss = executor_.device_loss()) {
      std::ignore = channel_.send(encode(Lost{task, fmt::format("{}; {}", loss->error, loss->followed)}));
      leave();
    }
    return channel_.send(encode(Started{task}));
  }

  /// False if the coordinator has gone.
  bool heed(Message& message) {
    const FromCoordinator decoded = decode_from_coordinator(message.text, lookup_);
    if (const auto* question = std::get_if<QuestionOrder>(&decoded)) {
      return answer(*question);
    }
    const auto* order = std::get_if<TaskOrder>(&decoded);
    if (order == nullptr) {
      throw ProtocolError("an acknowledgement out of turn");
    }
    map_arenas(*order, message);
    return obey(*order);
  }

  /// Each answer is sent as it is found, so that a case that kills the worker is known. False if the coordinator has
  /// gone.
  bool answer(const QuestionOrder& question) {
    bool connected = begin(question.task);
    for (auto asked = question.cases.begin(); connected && asked != question.cases.end(); ++asked) {
      const Outcome outcome = asked->mistake.empty() ? support_guarded(executor_, asked->c, question.options)
                                                     : Outcome{Outcome::Kind::error, asked->mistake, 0};
      connected = channel_.send(encode(Answer{question.task, outcome}));
      if (outcome.kind == Outcome::Kind::crashed) {
        leave();
      }
    }
    return connected;
  }

  void map_arenas(const TaskOrder& order, Message& message) {
    if (message.descriptors.size() != order.arenas.size()) {
      throw ProtocolError(fmt::format("{} arenas but {} descriptors", order.arenas.size(), message.descriptors.size()));
    }
    for (std::size_t i = 0; i < order.arenas.size(); ++i) {
      const ArenaFact& arena = order.arenas[i];
      arenas_[arena.id] = std::make_unique<Mapping>(message.descriptors[i].get(), arena.bytes, arena.writable);
    }
  }

  std::vector<HostPort> host_ports(const TaskOrder& order) const {
    std::vector<HostPort> ports;
    for (std::size_t i = 0; i < order.ports.size(); ++i) {
      const op::Port& port = order.ports[i];
      const PortPlace& place = order.places[i];
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
            fmt::format("port {} needs {} bytes and has {}", port.name, port.extent_bytes(), bytes.size()));
      }
      ports.push_back({&port, bytes});
    }
    return ports;
  }

  /// Runs one task and reports its end. False if the coordinator has gone.
  bool obey(const TaskOrder& order) {
    if (!begin(order.task)) {
      return false;
    }
    Outcome outcome{Outcome::Kind::error, order.mistake, 0};
    bool connected = true;
    if (order.mistake.empty()) {
      const RunSink sink = [&](const RunReport& report) { tell(order.task, report, connected); };
      outcome = execute_guarded(executor_, order.c, host_ports(order), order.options, sink);
    }
    if (!connected || !channel_.send(encode(TaskEnded{order.task, outcome}))) {
      return false;
    }
    if (outcome.kind == Outcome::Kind::crashed) {
      leave();
    }
    return true;
  }

  /// Sends a report and waits until the coordinator has read the outputs.
  void tell(std::uint64_t task, const RunReport& report, bool& connected) {
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
        "exec --worker is started by te-numcheck itself, which hands it a socket; "
        "without --worker, exec reads cases from stdin");
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

int worker_main(int socket_fd, const machine::DeviceChoice& device, const ExecutorFactory& factory,
                plan::OpLookup lookup) {
  check_socket(socket_fd);
  volunteer_for_oom();
  ::prctl(PR_SET_NAME, "numcheck-worker");   // else ps and top call it "exe"
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // what libraries print before a crash must not be lost in a buffer
  Channel channel{core::FileDescriptor(socket_fd)};
  Watchdog watchdog(channel.fd());
  std::unique_ptr<Executor> executor;
  try {
    executor = factory(device);
  } catch (const core::Error& error) {  // these texts are for people
    std::ignore = channel.send(encode(StartFailed{error.what()}));
    return kFailed;
  } catch (...) {
    std::ignore = channel.send(encode(StartFailed{describe_exception(std::current_exception())}));
    return kFailed;
  }
  if (!channel.send(encode(Hello{{executor->device(), executor->libraries()}}))) {
    return kFailed;
  }
  Worker(channel, watchdog, *executor, lookup).serve();
  return 0;
}

}  // namespace numcheck::worker
