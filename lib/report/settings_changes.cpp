#include "report/settings_changes.hpp"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace numcheck::report {
namespace {

using nlohmann::json;

/// The member at a path, or null.
const json& at_path(const json& report, const char* path) {
  static const json kNothing;
  const json::json_pointer pointer(path);
  return report.contains(pointer) ? report.at(pointer) : kNothing;
}

std::string text_of(const json& value, const char* nothing) {
  return value.is_null() ? nothing : value.is_string() ? value.get<std::string>() : value.dump();
}

void add_if_different(std::vector<std::string>& changes, const std::string& name, const json& base, const json& now,
                      const char* nothing = "none") {
  if (base != now) {
    changes.push_back(fmt::format("{}: {} -> {}", name, text_of(base, nothing), text_of(now, nothing)));
  }
}

/// The members of two objects.
void add_members(std::vector<std::string>& changes, const json& base, const json& now, const char* nothing) {
  std::set<std::string> names;
  for (const json* object : {&base, &now}) {
    if (object->is_object()) {
      for (const auto& [name, value] : object->items()) {
        names.insert(name);
      }
    }
  }
  for (const std::string& name : names) {
    const auto value = [&name](const json& object) { return object.is_object() ? object.value(name, json()) : json(); };
    add_if_different(changes, name, value(base), value(now), nothing);
  }
}

void add_fault(std::vector<std::string>& changes, const json& report, const char* which) {
  const json& fault = at_path(report, "/settings/inject");
  if (fault.is_string() && !fault.get_ref<const std::string&>().empty()) {
    changes.push_back(fmt::format("the {} run has the planted fault {}", which, fault.get<std::string>()));
  }
}

void add_state(std::vector<std::string>& changes, const json& report, const char* which) {
  if (at_path(report, "/interrupted") == true) {
    changes.push_back(fmt::format("the {} run was interrupted", which));
  }
  const json& count = at_path(report, "/plan/shard/count");
  if (count.is_number_unsigned() && count.get<std::uint64_t>() > 1) {
    changes.push_back(fmt::format("the {} report is one of {} shards", which, count.get<std::uint64_t>()));
  }
  if (at_path(report, "/machine/device/simulated") == true) {
    changes.push_back(fmt::format("the {} run is simulated", which));
  }
}

}  // namespace

std::vector<std::string> settings_changes(const json& base, const json& now) {
  std::vector<std::string> changes;
  for (const auto& [name, path] :
       {std::pair("te-numcheck", "/tool/version"), std::pair("revision", "/tool/revision"),
        std::pair("plan", "/plan/name"), std::pair("plan digest", "/plan/digest"), std::pair("seed", "/plan/seed"),
        std::pair("device", "/machine/device/name"), std::pair("driver", "/machine/driver")}) {
    add_if_different(changes, name, at_path(base, path), at_path(now, path));
  }
  add_fault(changes, base, "base");
  add_fault(changes, now, "new");
  for (const char* name : {"repeat", "reference_flops"}) {
    const std::string path = std::string("/settings/") + name;
    if (base.contains(json::json_pointer(path))) {
      add_if_different(changes, name, at_path(base, path.c_str()), at_path(now, path.c_str()));
    }
  }
  add_members(changes, at_path(base, "/machine/libraries"), at_path(now, "/machine/libraries"), "none");
  add_members(changes, at_path(base, "/environment"), at_path(now, "/environment"), "unset");
  add_state(changes, base, "base");
  add_state(changes, now, "new");
  return changes;
}

}  // namespace numcheck::report
