#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "data/distribution.hpp"
#include "fake.hpp"

namespace numcheck::worker::fake {

plan::Case make_case(const std::string& act, std::int64_t n, plan::Environment environment) {
  plan::Case c;
  c.op = &fake_op();
  c.params = {n, act};
  c.mode = op::find_mode("fp32");
  c.backend = "sim";
  c.inputs.common = data::make_distribution("normal");
  c.environment = std::move(environment);
  plan::identify(c);
  return c;
}

WorkerOptions worker_options(std::vector<std::string> extra) {
  WorkerOptions options;
  options.worker_argv = {"exec", "--worker"};
  options.worker_argv.insert(options.worker_argv.end(), extra.begin(), extra.end());
  options.timeout_s = 20;
  options.startup_timeout_s = 20;
  options.factory = &make_executor;
  return options;
}

Task make_task(WorkerPool& pool, const plan::Case& c, const std::vector<op::Port>& ports) {
  Task task;
  task.c = &c;
  for (const op::Port& port : ports) {
    task.blocks.push_back(pool.allocate(port.extent_bytes(), use_of(port)));
    task.ports.push_back({&port, task.blocks.back()->bytes()});
  }
  return task;
}

Done& Collector::submit(plan::Case c) {
  Done& done = *tasks_.emplace_back(std::make_unique<Done>());
  done.c = std::move(c);
  done.ports = done.c.op->ports(done.c.params, *done.c.mode);
  Task task = make_task(pool_, done.c, done.ports);
  const std::span<std::byte> x = task.ports[0].bytes;
  for (std::size_t i = 0; i < x.size() / sizeof(float); ++i) {
    const auto value = static_cast<float>(i + 1);
    std::memcpy(x.data() + i * sizeof(float), &value, sizeof(float));
  }
  const std::span<std::byte> y = task.ports[1].bytes;
  task.on_run = [&done, y](const RunReport& report) {
    done.runs.push_back(report);
    std::vector<float> values(y.size() / sizeof(float));
    if (!values.empty()) {
      std::memcpy(values.data(), y.data(), y.size());
    }
    done.outputs.push_back(std::move(values));
  };
  task.on_end = [&done](const Outcome& outcome) {
    done.outcome = outcome;
    ++done.ends;
  };
  pool_.submit(std::move(task));
  return done;
}

Done run_alone(WorkerOptions options, plan::Case c) {
  WorkerPool pool(std::move(options));
  Collector collector(pool);
  Done& done = collector.submit(std::move(c));
  pool.wait_idle();
  return std::move(done);
}

std::string detail(const RunReport& report, std::string_view name) {
  for (const auto& [key, value] : report.details) {
    if (key == name) {
      return value;
    }
  }
  return "";
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_gone(int pid, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text;
    std::getline(file, text);
    const auto end_of_name = text.rfind(')');
    if (end_of_name == std::string::npos || text.compare(end_of_name, 3, ") Z") == 0) {
      return true;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace numcheck::worker::fake
