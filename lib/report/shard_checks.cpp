#include "report/shard_checks.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace numcheck::report {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 2> kDeviceVariables = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"};

struct Fact {
  const char* what;
  json::json_pointer place;
  const char* nothing = "none";  ///< how messages name null
};

/// Facts of the program, the plan and how it ran, which must be equal.
const std::vector<Fact>& run_facts() {
  static const std::vector<Fact> facts = {
      {"the report version", json::json_pointer("/schema_version")},
      {"the program's version", json::json_pointer("/tool/version")},
      {"the program's revision", json::json_pointer("/tool/revision")},
      {"\"changed sources\"", json::json_pointer("/tool/dirty")},
      {"the plan's name", json::json_pointer("/plan/name")},
      {"the digest of the plan and of --known files", json::json_pointer("/plan/digest")},
      {"the plan's seed", json::json_pointer("/plan/seed")},
      {"the number of the plan's cases", json::json_pointer("/plan/expanded")},
      {"--repeat", json::json_pointer("/settings/repeat")},
      {"--inject", json::json_pointer("/settings/inject")},
      {"--inject-case", json::json_pointer("/settings/inject_cases")},
      {"--reference-flops", json::json_pointer("/settings/reference_flops")}};
  return facts;
}

/// Facts of the machine, which a shard without a worker does not know.
const std::vector<Fact>& machine_facts() {
  static const std::vector<Fact> facts = {
      {"the device", json::json_pointer("/machine/device/name")},
      {"the compute capability", json::json_pointer("/machine/device/sm")},
      {"\"simulated\"", json::json_pointer("/machine/device/simulated")},
      {"the number of multiprocessors", json::json_pointer("/machine/device/multiprocessors")},
      {"the driver", json::json_pointer("/machine/driver")}};
  return facts;
}

std::string text_of(const json& value, const char* nothing = "none") {
  return value.is_null() ? nothing : value.is_string() ? value.get<std::string>() : value.dump();
}

json value_at(const json& report, const json::json_pointer& place) {
  return report.contains(place) ? report.at(place) : json();
}

class Checks {
 public:
  explicit Checks(std::span<const NamedReport> reports) : reports_(reports) {
    for (const NamedReport& one : reports) {
      if (knows_machine(one.report)) {
        informed_.insert(&one.report);
      }
    }
  }

  std::vector<std::string> all() {
    same_form();
    complete();
    for (const Fact& fact : run_facts()) {
      same_fact(fact, [](const json&) { return true; });
    }
    const auto is_informed = [this](const json& report) { return informed_.contains(&report); };
    for (const Fact& fact : machine_facts()) {
      same_fact(fact, is_informed);
    }
    same_members("library", json::json_pointer("/machine/libraries"), {}, "none", is_informed);
    same_members("variable", json::json_pointer("/environment"), kDeviceVariables, "unset",
                 [](const json&) { return true; });
    same_survey();
    no_case_twice();
    return std::move(problems_);
  }

 private:
  /// Not if no worker was needed: there were no cases, or a budget was used up before the first one.
  static bool knows_machine(const json& report) {
    return !report.at("machine").at("device").is_null() ||
           std::ranges::any_of(report.at("cases"), [](const json& record) { return record.at("status") != "skipped"; });
  }

  void differ(std::string_view what, const NamedReport& one, const std::string& value, const NamedReport& first,
              const std::string& other) {
    problems_.push_back(fmt::format("{}: {} is {}, but {} has {}", one.name, what, value, first.name, other));
  }

  template <class Counts>
  void same_fact(const Fact& fact, const Counts& counts) {
    const NamedReport* first = nullptr;
    for (const NamedReport& one : reports_) {
      if (!counts(one.report)) {
        continue;
      }
      first = first == nullptr ? &one : first;
      const json value = value_at(one.report, fact.place), other = value_at(first->report, fact.place);
      if (value != other) {
        differ(fact.what, one, text_of(value, fact.nothing), *first, text_of(other, fact.nothing));
      }
    }
  }

  /// The members of an object, but for the exempt ones.
  template <class Counts>
  void same_members(const char* kind, const json::json_pointer& place, std::span<const std::string_view> exempt,
                    const char* nothing, const Counts& counts) {
    std::map<std::string, std::string> names;
    for (const NamedReport& one : reports_) {
      for (const auto& [name, value] : one.report.at(place).get_ref<const json::object_t&>()) {
        if (std::ranges::find(exempt, name) == exempt.end()) {
          names.emplace(name, fmt::format("the {} {}", kind, name));
        }
      }
    }
    for (const auto& [name, what] : names) {
      same_fact({what.c_str(), place / name, nothing}, counts);
    }
  }

  void same_form() {
    const NamedReport& first = reports_.front();
    const auto form = [](const NamedReport& one) {
      return one.report.value("brief", false) ? "a brief report" : "a full one";
    };
    for (const NamedReport& one : reports_) {
      if (std::string_view(form(one)) != form(first)) {
        problems_.push_back(fmt::format("{} is {}, but {} is {}", one.name, form(one), first.name, form(first)));
      }
      if (one.report.at("interrupted").get<bool>()) {
        problems_.push_back(fmt::format("{} was interrupted: continue that run with --resume", one.name));
      }
    }
  }

  /// Each shard of one number of them, once.
  void complete() {
    const NamedReport& first = reports_.front();
    const auto count_of = [](const NamedReport& one) {
      return one.report.at("plan").at("shard").at("count").get<std::uint64_t>();
    };
    const std::uint64_t count = count_of(first);
    std::map<std::uint64_t, const NamedReport*> there;
    for (const NamedReport& one : reports_) {
      const json& shard = one.report.at("plan").at("shard");
      const auto index = shard.at("index").get<std::uint64_t>();
      if (count_of(one) != count) {
        problems_.push_back(
            fmt::format("{} is one of {} shards, but {} is one of {}", one.name, count_of(one), first.name, count));
      } else if (index >= count) {
        problems_.push_back(fmt::format("{} is shard {} of {}, which does not exist", one.name, index + 1, count));
      } else if (const auto [at, is_new] = there.emplace(index, &one); !is_new) {
        problems_.push_back(
            fmt::format("shard {}/{} is there twice: {} and {}", index + 1, count, at->second->name, one.name));
      }
      if (count > 1 && !shard.contains("places")) {
        problems_.push_back(
            fmt::format("{} does not say where its cases belong: an older te-numcheck wrote it", one.name));
      }
    }
    constexpr std::size_t kNamed = 20;
    for (std::uint64_t index = 0, named = 0; index < count && named < kNamed; ++index) {
      if (!there.contains(index)) {
        problems_.push_back(fmt::format("shard {}/{} is missing", index + 1, count));
        ++named;
      }
    }
  }

  void same_survey() {
    for (const char* member : {"asked", "kept", "offered"}) {
      same_fact({member, json::json_pointer("/configurations") / member, "not asked for"},
                [](const json&) { return true; });
    }
  }

  void no_case_twice() {
    std::map<std::string_view, const NamedReport*> there;
    for (const NamedReport& one : reports_) {
      for (const json& record : one.report.at("cases")) {
        const auto [at, is_new] = there.emplace(record.at("digest").get_ref<const std::string&>(), &one);
        if (!is_new) {
          const auto& id = record.at("id").get_ref<const std::string&>();
          problems_.push_back(at->second == &one
                                  ? fmt::format("{} has the case {} twice", one.name, id)
                                  : fmt::format("{} and {} both have the case {}", at->second->name, one.name, id));
        }
      }
    }
  }

  std::span<const NamedReport> reports_;
  std::set<const json*> informed_;  ///< reports that know their machine
  std::vector<std::string> problems_;
};

}  // namespace

std::span<const std::string_view> device_variables() noexcept {
  return kDeviceVariables;
}

std::vector<std::string> shard_problems(std::span<const NamedReport> reports) {
  return Checks(reports).all();
}

}  // namespace numcheck::report
