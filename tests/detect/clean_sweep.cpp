// False alarms: random clean cases on simulated devices, none of which may fail any gate.
// clean_sweep [--cases N] [--seed S] [--threads T] [--first I] [--verbose]
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/parallel.hpp"
#include "mini_run.hpp"
#include "random_case.hpp"

namespace {

using namespace numcheck;

struct Options {
  std::uint64_t cases = 10'000;
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  int threads = 2;
  bool verbose = false;
};

/// Counts of all results; guarded by the mutex.
struct Tally {
  std::mutex mutex;
  std::uint64_t runs = 0;
  std::uint64_t exact = 0;
  std::map<std::string, std::uint64_t> failures;
  std::map<std::string, std::uint64_t> inconclusive;
  bool verbose = false;
  std::map<std::string, double> closest;  ///< per gate, largest measured / limit
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (word == "--cases") {
      options.cases = number();
    } else if (word == "--seed") {
      options.seed = number();
    } else if (word == "--first") {
      options.first = number();
    } else if (word == "--threads") {
      options.threads = static_cast<int>(std::max<std::uint64_t>(1, number()));
    } else if (word == "--verbose") {
      options.verbose = true;
    } else {
      std::fprintf(stderr, "usage: clean_sweep [--cases N] [--seed S] [--threads T] [--first I] [--verbose]\n");
      std::exit(2);
    }
  }
  return options;
}

void note_run(const plan::Case& c, std::uint64_t index, const verdict::RunResult& run, Tally& tally) {
  constexpr std::uint64_t kMostPrinted = 40;
  ++tally.runs;
  for (const verdict::OutputResult& output : run.outputs) {
    for (const tolerance::Criterion& criterion : output.criteria) {
      if (criterion.limit > 0 && criterion.limit < 1e300) {
        double& closest = tally.closest[criterion.name];
        closest = std::max(closest, criterion.measured / criterion.limit);
      }
      tally.exact += criterion.name == "exact" ? 1 : 0;
    }
    if (const std::string fake = output.certificate.vacuous_with(); !fake.empty()) {
      ++tally.inconclusive[fake];
      if (tally.verbose) {
        std::printf("inconclusive with %s: %s\n", fake.c_str(), detect::describe_failure(c, run).c_str());
      }
    }
  }
  const tolerance::Criterion* failing = detect::first_failing(run);
  if (failing != nullptr || !run.run.error.empty()) {
    std::uint64_t& count = tally.failures[failing != nullptr ? failing->name : "error: " + run.run.error];
    if (++count <= kMostPrinted) {
      std::printf("FAIL %llu %s\n", static_cast<unsigned long long>(index), detect::describe_failure(c, run).c_str());
      std::fflush(stdout);
    }
  }
}

void work(const Options& options, std::atomic<std::uint64_t>& next, Tally& tally) {
  detect::MiniRunner runner;
  for (std::uint64_t i = next.fetch_add(1); i < options.first + options.cases; i = next.fetch_add(1)) {
    const detect::RandomCase random = detect::random_case(options.seed, i);
    std::string error;
    try {
      const detect::MiniResult result = runner.run(random.c, random.sm, {.repeats = i % 8 == 0 ? 2 : 1});
      const std::scoped_lock lock(tally.mutex);
      if (result.outcome.kind != worker::Outcome::Kind::done || result.runs.empty()) {
        error = "not run: " + result.outcome.reason;
      }
      for (const verdict::RunResult& run : result.runs) {
        note_run(random.c, i, run, tally);
      }
    } catch (const std::exception& e) {
      error = e.what();
    }
    const std::scoped_lock lock(tally.mutex);
    if (!error.empty()) {
      ++tally.failures[error];
      std::printf("FAIL %llu %s: %s\n", static_cast<unsigned long long>(i), random.c.id.c_str(), error.c_str());
    } else if (options.verbose) {
      std::printf("%llu %s\n", static_cast<unsigned long long>(i), random.c.id.c_str());
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  core::set_thread_count(1);  // cases are small: threads take whole cases
  std::atomic<std::uint64_t> next{options.first};
  Tally tally;
  tally.verbose = options.verbose;
  std::vector<std::thread> threads;
  for (int t = 0; t < options.threads; ++t) {
    threads.emplace_back([&] { work(options, next, tally); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::uint64_t failures = 0;
  for (const auto& [gate, count] : tally.failures) {
    std::printf("failed %-16s %llu\n", gate.c_str(), static_cast<unsigned long long>(count));
    failures += count;
  }
  for (const auto& [fake, count] : tally.inconclusive) {
    std::printf("inconclusive with %-16s %llu\n", fake.c_str(), static_cast<unsigned long long>(count));
  }
  for (const auto& [gate, ratio] : tally.closest) {
    std::printf("closest %-16s %.3f of its limit\n", gate.c_str(), ratio);
  }
  std::printf("%llu cases, %llu runs, %llu judged bit for bit, %llu failures (seed %llu)\n",
              static_cast<unsigned long long>(options.cases), static_cast<unsigned long long>(tally.runs),
              static_cast<unsigned long long>(tally.exact), static_cast<unsigned long long>(failures),
              static_cast<unsigned long long>(options.seed));
  return failures == 0 && tally.runs >= options.cases ? 0 : 1;
}
