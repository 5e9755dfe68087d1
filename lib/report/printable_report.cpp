#include "report/printable_report.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include <nlohmann/json.hpp>

#include "core/parallel.hpp"
#include "core/printable.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

bool all_printable(const json& value);

/// On all threads: the cases of a large run have millions of strings.
bool all_items_printable(const json& list) {
  constexpr std::size_t kItemsPerChunk = 256;
  if (list.size() <= kItemsPerChunk) {
    return std::ranges::all_of(list, all_printable);
  }
  std::atomic<bool> printable = true;
  core::parallel_chunks(list.size(), kItemsPerChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && printable; ++i) {
      printable = printable && all_printable(list[i]);
    }
  });
  return printable;
}

bool all_printable(const json& value) {
  if (value.is_string()) {
    return core::is_printable(value.get_ref<const std::string&>());
  }
  if (value.is_object()) {
    const auto members = value.items();
    return std::all_of(members.begin(), members.end(), [](const auto& member) {
      return core::is_printable(member.key()) && all_printable(member.value());
    });
  }
  return !value.is_array() || all_items_printable(value);
}

json printable_copy(const json& value) {
  if (value.is_string()) {
    return core::printable(value.get_ref<const std::string&>());
  }
  if (value.is_object()) {
    json copy = json::object();
    for (const auto& [key, member] : value.items()) {
      copy[core::printable(key)] = printable_copy(member);
    }
    return copy;
  }
  if (value.is_array()) {
    json copy = json::array();
    for (const json& item : value) {
      copy.push_back(printable_copy(item));
    }
    return copy;
  }
  return value;
}

}  // namespace

PrintableReport::PrintableReport(const json& report)
    : report_(&report), copy_(all_printable(report) ? nullptr : std::make_unique<json>(printable_copy(report))) {}

PrintableReport::~PrintableReport() = default;

const json& PrintableReport::get() const noexcept {
  return copy_ == nullptr ? *report_ : *copy_;
}

}  // namespace numcheck::report
