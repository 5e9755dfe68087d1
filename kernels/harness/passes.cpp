#include "kernels/harness/passes.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "kernels/contract/ports.hpp"

namespace numcheck::kernels::harness {
namespace {

/// One pass as a case of its own.
struct PassCase {
  plan::Case c;
  std::vector<op::Port> ports;
  std::string inject;
  bool is_last = false;

  [[nodiscard]] Call call() const { return {&c, ports, inject, is_last}; }
  [[nodiscard]] Call without_fault() const { return {&c, ports, "", is_last}; }
  /// The case's memory as the ports of this pass.
  [[nodiscard]] std::vector<PortMemory> memory(std::span<const PortMemory> all) const {
    std::vector<PortMemory> own;
    std::ranges::transform(ports, std::back_inserter(own),
                           [all](const op::Port& port) { return PortMemory{&port, port_memory(all, port.name).data}; });
    return own;
  }
};

/// Algorithms refer to their pass, so it lives as long as they do.
using PassCases = std::shared_ptr<const std::vector<PassCase>>;

/// The passes, each with the case's fault if the backend can plant it there; empty if the case is one op only.
PassCases passes_of(Backend& backend, const Call& call) {
  auto cases = std::make_shared<std::vector<PassCase>>();
  for (op::Pass& pass : op::passes_of(*call.c->op, call.c->params)) {
    PassCase& added = cases->emplace_back(PassCase{*call.c, pass.op->ports(pass.params, *call.c->mode), "", false});
    added.c.op = pass.op;
    added.c.params = std::move(pass.params);
  }
  if (cases->empty()) {
    return cases;
  }
  cases->back().is_last = true;
  std::for_each(cases->begin(), cases->end() - 1, [](PassCase& pass) { pass.c.algorithms = {}; });
  for (PassCase& pass : *cases) {
    const Call faulty{&pass.c, pass.ports, call.inject, pass.is_last};
    pass.inject = !call.inject.empty() && backend.supports(faulty).yes ? call.inject : "";
  }
  return cases;
}

std::string because_of(const Backend& backend, const PassCase& pass, std::string_view reason) {
  return pass.is_last ? std::string(reason)
                      : fmt::format("{} does not run {}, whose results this case reads: {}", backend.name(),
                                    pass.c.op->name, reason);
}

std::vector<Algorithm> algorithms_of(Backend& backend, const PassCase& pass) try {
  return backend.algorithms(pass.call());
} catch (const NotSupported& refusal) {
  throw NotSupported(because_of(backend, pass, refusal.what()));
}

std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// What pass `at` leaves in no fixed order, and all that later passes make of it.
void add_unordered(std::span<const PassCase> passes, std::size_t at, std::vector<std::string> names,
                   std::vector<std::string>& unordered) {
  for (const PassCase& later : passes.subspan(at + 1)) {
    for (const op::Port& port : later.ports) {
      if (port.role == op::Role::output || port.role == op::Role::amax) {
        names.emplace_back(port.name);
      }
    }
  }
  std::ranges::move(names, std::back_inserter(unordered));
}

/// One algorithm per pass, one after the other.
Algorithm chain(const PassCases& passes, std::vector<Algorithm> parts) {
  Algorithm all = std::move(parts.back());
  all.launches = 0;
  std::string labels;
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  std::vector<decltype(Algorithm::launch)> launches;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    Algorithm& earlier = parts[i];
    labels += earlier.label + "; then ";
    for (auto& [name, value] : earlier.details) {
      all.details.emplace_back(fmt::format("{}: {}", (*passes)[i].c.op->name, name), std::move(value));
    }
    all.rounding.attention = model::either(earlier.rounding.attention, all.rounding.attention);
    if (!earlier.unordered.empty()) {
      add_unordered(*passes, i, std::move(earlier.unordered), all.unordered);
    }
    offsets.push_back(bytes);
    bytes += aligned(earlier.workspace_bytes);
    launches.push_back(std::move(earlier.launch));
  }
  all.label = labels + all.label;
  offsets.push_back(bytes);
  all.workspace_bytes += bytes;
  launches.push_back(std::move(all.launch));
  all.launches = static_cast<int>(launches.size());
  all.launch = [passes, launches = std::move(launches), offsets = std::move(offsets)](
                   std::span<const PortMemory> ports, std::byte* workspace) -> DeviceSeconds {
    std::vector<DeviceSeconds> seconds;
    for (std::size_t i = 0; i < launches.size(); ++i) {
      seconds.push_back(launches[i]((*passes)[i].memory(ports), workspace + offsets[i]));
    }
    return [seconds = std::move(seconds)] {
      return std::accumulate(seconds.begin(), seconds.end(), 0.0,
                             [](double sum, const DeviceSeconds& of_pass) { return sum + of_pass(); });
    };
  };
  return all;
}

}  // namespace

Support supports(Backend& backend, const Call& call) {
  const PassCases passes = passes_of(backend, call);
  if (passes->empty()) {
    return backend.supports(call);
  }
  for (const PassCase& pass : *passes) {
    if (Support support = backend.supports(pass.without_fault()); !support.yes) {
      return {false, because_of(backend, pass, support.reason)};
    }
  }
  if (call.inject.empty() || std::ranges::any_of(*passes, [](const PassCase& pass) { return !pass.inject.empty(); })) {
    return {};
  }
  std::vector<std::string> reasons;
  for (const PassCase& pass : *passes) {
    std::string reason = backend.supports({&pass.c, pass.ports, call.inject, pass.is_last}).reason;
    if (std::ranges::find(reasons, reason) == reasons.end()) {
      reasons.push_back(std::move(reason));
    }
  }
  return {false, fmt::format("{}", fmt::join(reasons, "; "))};
}

std::vector<Algorithm> algorithms_of(Backend& backend, const Call& call) {
  const PassCases passes = passes_of(backend, call);
  if (passes->empty()) {
    return backend.algorithms(call);
  }
  std::vector<Algorithm> earlier;
  for (std::size_t i = 0; i + 1 < passes->size(); ++i) {
    std::vector<Algorithm> offered = algorithms_of(backend, (*passes)[i]);
    if (offered.empty()) {
      return {};
    }
    earlier.push_back(std::move(offered.front()));
  }
  std::vector<Algorithm> all;
  for (Algorithm& last : algorithms_of(backend, passes->back())) {
    std::vector<Algorithm> parts = earlier;
    parts.push_back(std::move(last));
    all.push_back(chain(passes, std::move(parts)));
  }
  return all;
}

std::vector<std::string> configurations_of(Backend& backend, const Call& call) {
  const PassCases passes = passes_of(backend, call);
  if (passes->empty()) {
    return backend.configurations(call);
  }
  std::vector<std::string> all;
  for (const PassCase& pass : *passes) {
    std::ranges::move(backend.configurations(pass.call()), std::back_inserter(all));
  }
  return all;
}

}  // namespace numcheck::kernels::harness
