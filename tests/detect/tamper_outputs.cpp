// Tampers with right results of the cases of a plan, every output of every op, and prints what is not caught: a JSON line each,
// with how much was changed, in units of the errors that the results have without it.
//
//   tamper_outputs PLAN COUNT SEED [SHARE]
//
// COUNT tamperings of each case that passes on a simulated sm_90; SHARE: print those of at least this many errors only.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "catalog.hpp"
#include "core/codec.hpp"
#include "data/inputs.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/harness/port_image.hpp"
#include "kernels/sim/sim.hpp"
#include "output_tampering.hpp"
#include "plan/plan.hpp"
#include "prepare/group.hpp"
#include "verdict/evaluate.hpp"
#include "worker/plain_block.hpp"

namespace numcheck::detect {
namespace {

/// What changed between two images of a port.
struct Difference {
  std::size_t elements = 0, pattern = 0;
  double squares = 0, errors = 0, most_ulps = 0, signal = 0;

  /// Root mean square of the change over that of the errors of the elements that changed.
  [[nodiscard]] double ratio() const { return pattern != 0 ? 1e30 : elements == 0 ? 0 : std::sqrt(squares / errors); }
};

bool is_outside(const op::OutputValues* expected, std::size_t i) {
  const auto index = static_cast<std::int64_t>(i);
  return expected != nullptr && std::ranges::any_of(expected->outside, [index](const op::OutputValues::Range& range) {
           return range.begin <= index && index < range.end;
         });
}

/// `expected` may be null: an amax.
Difference compare(const op::Port& port, std::span<const double> right, std::span<const double> wrong,
                   const op::OutputValues* expected, double scale) {
  Difference found;
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (right[i] == wrong[i] || (std::isnan(right[i]) && std::isnan(wrong[i])) || is_outside(expected, i)) {
      continue;
    }
    ++found.elements;
    if (!std::isfinite(right[i]) || !std::isfinite(wrong[i])) {
      ++found.pattern;
      continue;
    }
    const double unit = core::ulp(right[i], port.dtype);
    const double y = expected != nullptr ? expected->value[i] * scale : right[i];
    const double error = std::isfinite(y) ? right[i] - y : 0;
    found.squares += (wrong[i] - right[i]) * (wrong[i] - right[i]);
    found.errors += error * error + unit * unit / 12;
    found.most_ulps = std::max(found.most_ulps, std::fabs(wrong[i] - right[i]) / unit);
  }
  return found;
}

std::vector<double> values_of(const worker::HostPort& host) {
  const core::Buffer<double> values = data::load_port(*host.port, host.bytes);
  return {values.span().begin(), values.span().end()};
}

class Session {
 public:
  Session(std::size_t count, std::uint64_t seed, double least)
      : backend_(kernels::sim::make_backend(90, app::bindings())), count_(count), random_(seed), least_(least) {}

  void run(const plan::Case& c) {
    constexpr double kNoLimit = 1e18;
    const std::vector<plan::Case> cases = {c};
    const auto allocate = [](std::size_t bytes, worker::BlockUse) {
      return std::make_shared<worker::PlainBlock>(bytes);
    };
    const prepare::PreparedGroup made =
        prepare::prepare_group(cases, {.key = {}, .cases = {0}}, app::catalog(), kNoLimit, allocate);
    prepare::compute_references(*made.group, [](const auto& body) { body(); });
    verdict::ComparisonCache cache;
    verdict::EvaluationContext context;
    context.group = made.group.get();
    context.prepared = &made.cases.front();
    context.host = made.cases.front().host;
    context.device = &backend_->device();
    context.cache = &cache;
    bool first = true;
    const worker::Outcome outcome = harness_.run(*backend_, cases.front(), made.cases.front().host,
                                                 {.repeats = 1, .inject = {}}, [&](const worker::RunReport& report) {
                                                   if (std::exchange(first, false)) {
                                                     tamper(context, report);
                                                   }
                                                 });
    ++outcomes_[outcome.kind == worker::Outcome::Kind::done ? 0 : 1];
  }

  void finish() const {
    fmt::print(stderr, "{} cases ran, {} did not; {} pass; {} tamperings changed something, {} of them passed\n",
               outcomes_[0], outcomes_[1], passing_, tampered_, missed_);
  }

 private:
  void tamper(verdict::EvaluationContext& context, const worker::RunReport& report) {
    double seconds = 0;
    if (verdict::evaluate_run(context, report, seconds).status != verdict::Status::pass) {
      return;
    }
    ++passing_;
    std::vector<std::size_t> outputs;
    for (std::size_t i = 0; i < context.host.size(); ++i) {
      const op::Port& port = *context.host[i].port;
      if ((port.role == op::Role::output || port.role == op::Role::amax) && port.elements() != 0 && !port.passed_on) {
        outputs.push_back(i);
      }
    }
    for (std::size_t n = 0; n < count_ && !outputs.empty(); ++n) {
      const worker::HostPort& host = context.host[outputs[below(random_, outputs.size())]];
      tamper(context, report, host, tamperings()[below(random_, tamperings().size())]);
    }
  }

  void tamper(verdict::EvaluationContext& context, worker::RunReport report, const worker::HostPort& host,
              const Tampering& tampering) {
    const std::vector<std::byte> kept(host.bytes.begin(), host.bytes.end());
    const std::vector<double> right = values_of(host);
    Output output(host);
    tampering.apply(output, random_);
    if (std::equal(kept.begin(), kept.end(), host.bytes.begin())) {
      return;
    }
    const std::vector<double> wrong = values_of(host);
    core::Buffer<std::byte> scratch;
    for (worker::OutputDigest& digest : report.outputs) {
      if (digest.port == host.port->name) {
        digest.digest = kernels::harness::digest_elements(*host.port, host.bytes, scratch);
      }
    }
    double seconds = 0;
    const verdict::RunResult result = verdict::evaluate_run(context, report, seconds);
    std::copy(kept.begin(), kept.end(), host.bytes.begin());
    const op::Values& values = *context.prepared->rounding->values.get();
    const auto expected = std::ranges::find(values.outputs, host.port->name, &op::OutputValues::port);
    const auto scale = context.prepared->scale.find(host.port->name);
    const Difference found = compare(*host.port, right, wrong, expected == values.outputs.end() ? nullptr : &*expected,
                                     scale == context.prepared->scale.end() ? 1.0 : static_cast<double>(scale->second));
    if (found.elements == 0) {
      return;
    }
    ++tampered_;
    if (result.status != verdict::Status::fail) {
      ++missed_;
      report_missed(context, result, host, tampering, found);
    }
  }

  void report_missed(const verdict::EvaluationContext& context, const verdict::RunResult& result,
                     const worker::HostPort& host, const Tampering& tampering, const Difference& found) const {
    if (found.ratio() < least_) {
      return;
    }
    const plan::Case& c = *context.prepared->c;
    nlohmann::json line = {{"id", c.id},
                           {"seed", c.seed},
                           {"op", c.op->name},
                           {"mode", c.mode->name},
                           {"port", host.port->name},
                           {"dtype", core::dtype_info(host.port->dtype).name},
                           {"tampering", tampering.name},
                           {"status", verdict::status_name(result.status)},
                           {"elements", found.elements},
                           {"of", host.port->elements()},
                           {"pattern", found.pattern},
                           {"ulps", found.most_ulps},
                           {"ratio", found.ratio()}};
    for (const verdict::OutputResult& output : result.outputs) {
      if (output.port == host.port->name) {
        const metric::Statistics& s = output.statistics;
        line["e/B"] = s.max_over_bound;
        line["z"] = s.z_max;
        line["judged"] = s.judged();
        line["undetermined"] = s.undetermined;
        line["order"] = s.order_dependent;
        line["unknown"] = s.unknown;
      }
    }
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  kernels::harness::Harness harness_;
  std::unique_ptr<kernels::Backend> backend_;
  std::size_t count_;
  Random random_;
  double least_;
  std::array<std::size_t, 2> outcomes_{};
  std::size_t passing_ = 0, tampered_ = 0, missed_ = 0;
};

int main_of(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: tamper_outputs PLAN COUNT SEED [SHARE]\n");
    return 2;
  }
  const plan::Plan plan = plan::load_plan(argv[1], app::vocabulary(), {});
  Session session(std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10),
                  argc > 4 ? std::strtod(argv[4], nullptr) : 0);
  for (const plan::Case& c : plan.cases) {
    session.run(c);
  }
  session.finish();
  return 0;
}

}  // namespace
}  // namespace numcheck::detect

int main(int argc, char** argv) {
  return numcheck::detect::main_of(argc, argv);
}
