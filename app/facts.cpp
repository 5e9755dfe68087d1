#include "facts.hpp"

#include <unistd.h>

#include <array>
#include <ctime>

#include <fmt/chrono.h>

#include "core/isa.hpp"
#include "core/parallel.hpp"
#include "machine/build_info.hpp"
#include "machine/environment.hpp"
#include "reference/matmul.hpp"

namespace numcheck::app {

report::RunFacts own_facts(const std::vector<std::string>& argv) {
  const machine::BuildInfo& build = machine::build_info();
  report::RunFacts facts;
  facts.tool = {build.version, build.revision, build.dirty, argv};
  facts.host = {core::thread_count(), std::string(core::isa_name(core::active_isa())),
                std::string(reference::matmul_implementation()), ""};
  for (const machine::VariableState& variable : machine::numeric_environment()) {
    facts.environment.emplace_back(variable.name, variable.value);
  }
  facts.started = utc_now();
  return facts;
}

std::string version_text(const report::ToolFacts& tool) {
  return fmt::format("{} ({}{})", tool.version, tool.revision, tool.dirty ? ", changed" : "");
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string utc_stamp() {
  return fmt::format("{:%Y%m%d-%H%M%S}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace numcheck::app
