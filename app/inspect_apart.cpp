#include "inspect_apart.hpp"

#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "kernels/transformer_engine/inspect.hpp"
#include "worker/channel.hpp"
#include "worker/output_tail.hpp"
#include "worker/spawn.hpp"
#include "worker/workers.hpp"

namespace numcheck::app {
namespace {

using kernels::cuda_support::Inspection;

/// Loading from a cold network disk takes half a minute.
constexpr auto kTimeout = std::chrono::seconds(120);
constexpr double kStep_s = 0.01;

std::vector<std::string> path_list(const std::string& te_lib) {
  return te_lib.empty() ? std::vector<std::string>() : std::vector<std::string>{te_lib};
}

/// The child's answer; nothing if it ended, or took too long, without one. Its output is read meanwhile, so that it
/// cannot block on a full pipe.
std::optional<std::string> wait_for_answer(worker::SpawnedWorker& child, worker::OutputTail& output) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  for (bool ended = false; std::chrono::steady_clock::now() < deadline;) {
    worker::Message message;
    if (child.channel.receive(message, false) == worker::Received::message) {
      return message.text;
    }
    if (ended) {
      return std::nullopt;
    }
    output.drain({});
    ended = worker::wait_for_end(child.pid, kStep_s);
  }
  return std::nullopt;
}

/// Kills the child if it has not ended; says how it ended.
std::string end_child(worker::SpawnedWorker& child) {
  const bool ended = worker::wait_for_end(child.pid, 0);
  ::kill(-child.pid, SIGKILL);
  (void)worker::wait_for_end(child.pid, 1);
  const std::optional<int> status = worker::reap(child.pid);
  if (!ended) {
    return "did not end";
  }
  return status.has_value() ? worker::describe_exit(*status) : "ended";
}

Inspection inspect(const std::string& name, const std::string& te_lib, const std::string& lib_dir) {
  using namespace kernels;
  for (const cuda_support::LibraryName& library :
       {cuda_support::cublaslt_library(), cuda_support::cublas_library(), cuda_support::cudnn_library()}) {
    if (library.title == name) {
      return cuda_support::inspect_library(library, lib_dir);
    }
  }
  return transformer_engine::inspect_library(path_list(te_lib), lib_dir);
}

}  // namespace

Inspection inspect_apart(const std::string& name, const std::string& te_lib, const std::string& lib_dir) {
  std::vector<std::string> arguments = {"doctor", "--inspect", name};
  if (!te_lib.empty()) {
    arguments.insert(arguments.end(), {"--te-lib", te_lib});
  }
  if (!lib_dir.empty()) {
    arguments.insert(arguments.end(), {"--lib-dir", lib_dir});
  }
  worker::SpawnedWorker child = worker::spawn_worker(arguments, {});
  worker::OutputTail output(std::move(child.output));
  const std::optional<std::string> answer = wait_for_answer(child, output);
  if (answer.has_value()) {
    child.channel.close();
    (void)worker::wait_for_end(child.pid, 3);  // a library may have something to do at exit
  }
  const std::string end = end_child(child);
  if (!answer.has_value()) {
    output.drain({});
    return {.file = te_lib,
            .remark = fmt::format("the process that loaded {} {}{}", te_lib.empty() ? "it" : te_lib, end,
                                  output.last_output())};
  }
  const nlohmann::json reply = nlohmann::json::parse(*answer);
  return {reply.at("usable").get<bool>(), reply.at("version").get<std::string>(), reply.at("file").get<std::string>(),
          reply.at("remark").get<std::string>()};
}

void answer_inspection(const std::string& name, const std::string& te_lib, const std::string& lib_dir) {
  worker::Channel channel{core::FileDescriptor(worker::kWorkerSocketFd)};
  const Inspection inspection = inspect(name, te_lib, lib_dir);
  const nlohmann::json answer = {{"usable", inspection.usable},
                                 {"version", inspection.version},
                                 {"file", inspection.file},
                                 {"remark", inspection.remark}};
  if (!channel.send(answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))) {
    throw core::UsageError(
        "doctor --inspect is internal: doctor runs it for each library and reads the answer from descriptor 3");
  }
}

}  // namespace numcheck::app
