#include "doctor_json.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "machine/build_info.hpp"
#include "report/schema_builder.hpp"

namespace numcheck::app {
namespace {

using nlohmann::json;
namespace schema = report::schema;

constexpr const char* kName = "te-numcheck/doctor";
constexpr const char* kVersion = "1.0.0";

json or_null(const std::string& text) {
  return text.empty() ? json() : json(text);
}

const char* driver_word(kernels::loader::DriverState::Kind kind) {
  using Kind = kernels::loader::DriverState::Kind;
  return kind == Kind::works ? "works" : kind == Kind::absent ? "absent" : "broken";
}

json tool_json(bool cuda_build) {
  const machine::BuildInfo& build = machine::build_info();
  return {{"version", build.version},       {"revision", build.revision},
          {"dirty", build.dirty},           {"compiler", build.compiler},
          {"build_type", build.build_type}, {"cuda_toolkit", cuda_build ? or_null(build.cuda_toolkit) : json()}};
}

json device_json(const DeviceFacts& facts) {
  json device = {
      {"requested", facts.requested}, {"usable", facts.device.has_value()}, {"problem", or_null(facts.problem)}};
  for (const char* name : {"name", "sm", "simulated", "index", "uuid", "driver", "memory_bytes", "multiprocessors",
                           "cuda_driver", "cuda_runtime"}) {
    device[name] = nullptr;
  }
  if (facts.device.has_value()) {
    const machine::Device& found = *facts.device;
    device["name"] = found.name;
    device["sm"] = found.sm;
    device["simulated"] = found.simulated;
    if (!found.simulated) {
      device["index"] = found.index;
      device["uuid"] = found.uuid;
      device["driver"] = found.driver;
      device["memory_bytes"] = found.memory_bytes;
      device["multiprocessors"] = found.multiprocessors;
    }
  }
  for (const auto& [name, version] : facts.cuda_versions) {
    device[name] = version;
  }
  return device;
}

json library_json(const LibraryFacts& library) {
  const kernels::cuda_support::Inspection& inspection = library.inspection;
  return {{"name", library.name},
          {"usable", inspection.usable},
          {"required", library.required},
          {"version", or_null(inspection.version)},
          {"file", or_null(inspection.file)},
          {"remark", or_null(inspection.remark)}};
}

json device_schema() {
  json device = schema::object({
      {"requested", schema::text("what --device says: auto, cuda:N or sim:sm_N")},
      {"usable", schema::flag("whether a run with these options has a device")},
      {"problem", schema::text_or_null("why it has none")},
      {"name", schema::text_or_null("\"NVIDIA H200\", or \"simulated sm_90\"")},
      {"uuid", schema::text_or_null("of a GPU")},
      {"driver", schema::text_or_null("version of the NVIDIA driver, of a GPU")},
      {"cuda_driver", schema::text_or_null("CUDA version that the driver supports, of a GPU")},
      {"cuda_runtime", schema::text_or_null("CUDA version of the linked runtime, of a GPU")},
  });
  const auto number_or_null = [&device](const char* name, const char* description) {
    device["properties"][name] = {{"type", {"integer", "null"}}, {"minimum", 0}, {"description", description}};
    device["required"].push_back(name);
  };
  number_or_null("sm", "10 * major + minor of the compute capability");
  number_or_null("index", "CUDA's number of a GPU");
  number_or_null("memory_bytes", "memory of a GPU");
  number_or_null("multiprocessors", "of a GPU");
  device["properties"]["simulated"] = {{"type", {"boolean", "null"}},
                                       {"description", "true: modelled on the host, no hardware evidence"}};
  device["required"].push_back("simulated");
  device["description"] = "the device that a run with the same options would use; null for what it does not have";
  return device;
}

json libraries_schema() {
  json list = schema::list_of(schema::object({
      {"name", schema::text("the backend that needs it: cublaslt, cublas, cudnn, transformer_engine")},
      {"usable", schema::flag("it was found and loads")},
      {"required", schema::flag("whether the verdict depends on it: cuBLASLt on a GPU, and what --te-lib names")},
      {"version", schema::text_or_null("as the library or its package says")},
      {"file", schema::text_or_null("absolute path of what was loaded")},
      {"remark", schema::text_or_null("why it cannot be used, and where it was looked for; or what it lacks")},
  }));
  list["description"] = "in the order in which --te-lib names them; empty in a build without CUDA";
  return list;
}

json variables_schema() {
  json list = schema::list_of(schema::object({
      {"name", schema::text("of the environment variable")},
      {"value", schema::text_or_null("null: unset; a value with a path is \"(path)\"")},
      {"listed", schema::flag("false: unknown to te-numcheck, but its name suggests that it may change numbers")},
  }));
  list["description"] = "variables that change numbers";
  return list;
}

}  // namespace

json doctor_json(const DoctorFacts& facts, const std::vector<Finding>& findings) {
  json libraries = json::array();
  for (const LibraryFacts& library : facts.libraries) {
    libraries.push_back(library_json(library));
  }
  json variables = json::array();
  for (const machine::VariableState& variable : facts.variables) {
    variables.push_back({{"name", variable.name},
                         {"value", variable.value.has_value() ? json(*variable.value) : json()},
                         {"listed", variable.listed}});
  }
  json sentences = json::array();
  json ignored = json::array();
  for (const Finding& finding : findings) {
    sentences.push_back(
        {{"kind", word_of(finding.kind)}, {"subject", finding.subject}, {"sentence", finding.sentence}});
  }
  for (const machine::IgnoredEntry& entry : facts.ignored) {
    ignored.push_back({{"variable", entry.variable}, {"entry", entry.entry}});
  }
  return {{"schema", kName},
          {"schema_version", kVersion},
          {"verdict", is_unusable(findings) ? "unusable" : "usable"},
          {"tool", tool_json(facts.cuda_build)},
          {"driver", {{"state", driver_word(facts.driver.kind)}, {"devices", facts.driver.devices}}},
          {"device", device_json(facts.device)},
          {"libraries", std::move(libraries)},
          {"host",
           {{"threads", facts.host.threads},
            {"isa", facts.host.isa},
            {"reference", facts.host.reference},
            {"memory_bytes", facts.host.memory_bytes},
            {"default_memory_bytes", facts.host.default_memory_bytes}}},
          {"ignored_search_paths", std::move(ignored)},
          {"variables", std::move(variables)},
          {"findings", std::move(sentences)}};
}

json doctor_schema() {
  json driver = schema::object({{"devices", schema::count("GPUs that it reports")}});
  driver["properties"]["state"] = {{"enum", {"works", "absent", "broken"}},
                                   {"description",
                                    "absent: this machine has no NVIDIA driver; broken: it has one without a "
                                    "usable device"}};
  driver["required"].push_back("state");
  json finding = schema::object({{"subject", schema::text("what it is about")},
                                 {"sentence", schema::text("for people; its wording may change")}});
  finding["properties"]["kind"] = {{"enum", {"ok", "note", "bad"}}, {"description", "bad: the verdict is unusable"}};
  finding["required"].push_back("kind");
  json whole = schema::object({
      {"schema_version",
       schema::text("version of this format; major breaks, minor adds, patch fixes. Readers must ignore "
                    "unknown members")},
      {"tool", schema::object({{"version", schema::text("of te-numcheck")},
                               {"revision", schema::text("commit, or \"unknown\"")},
                               {"dirty", schema::flag("whether it was built with local changes")},
                               {"compiler", schema::text("name and version")},
                               {"build_type", schema::text("of CMake")},
                               {"cuda_toolkit", schema::text_or_null("version; null: a build without CUDA")}})},
      {"driver", std::move(driver)},
      {"device", device_schema()},
      {"libraries", libraries_schema()},
      {"host", schema::object({{"threads", schema::count("that te-numcheck uses")},
                               {"isa", schema::text("instruction set of its loops")},
                               {"reference", schema::text("what multiplies matrices for references")},
                               {"memory_bytes", schema::count("that this process may use")},
                               {"default_memory_bytes", schema::count("what --memory is if it is not given")}})},
      {"ignored_search_paths",
       schema::list_of(schema::object({{"variable", schema::text("a list of folders, or a folder")},
                                       {"entry", schema::text("that is relative, and not searched for libraries")}}))},
      {"variables", variables_schema()},
      {"findings", schema::list_of(std::move(finding))},
  });
  whole["properties"]["schema"] = {{"const", kName}, {"description", "name of this format"}};
  for (const auto& [name, description] : {std::pair{"tool", "the te-numcheck that looked"},
                                          {"driver", "the NVIDIA driver of this machine"},
                                          {"host", "processor and memory that references have"},
                                          {"ignored_search_paths", "entries of search paths that are not used"},
                                          {"findings", "what is right, worth knowing or wrong, in the order shown"}}) {
    whole["properties"][name]["description"] = description;
  }
  whole["properties"]["verdict"] = {{"enum", {"usable", "unusable"}},
                                    {"description", "unusable: exit code 3, as a run would end"}};
  whole["required"].push_back("schema");
  whole["required"].push_back("verdict");
  whole["$schema"] = "http://json-schema.org/draft-07/schema#";
  whole["$id"] = "https://te-numcheck.invalid/doctor-1.schema.json";  // a name, not a place
  whole["title"] = "te-numcheck doctor --json";
  return whole;
}

}  // namespace numcheck::app
