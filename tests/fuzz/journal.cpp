// A journal that is read back: as it is, and with correct checksums, which a fuzzer cannot guess but a hostile writer can
// compute.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/json_depth.hpp"
#include "run/journal_text.hpp"
#include "text.hpp"
#include "views.hpp"

namespace {

using namespace numcheck;
using nlohmann::json;

void read(const std::string& text) {
  std::vector<json> records;
  try {
    for (const run::JournalEntry& entry : run::parse_journal(text, "results.jsonl").finished) {
      records.push_back(json::parse(entry.record));
    }
  } catch (const core::Error&) {
    return;
  }
  fuzz::show(records);
}

core::Digest digest_in(const json& record) {
  const std::string hex = record.value("digest", json()).is_string() ? record.at("digest").get<std::string>() : "";
  if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return {};
  }
  return {std::stoull(hex.substr(0, 16), nullptr, 16), std::stoull(hex.substr(16), nullptr, 16)};
}

/// Every line that is an object as the record of a sealed line.
std::string sealed(std::string_view text) {
  const run::JournalHead head = run::journal_head({{"plan digest", "1"}});
  std::string journal = head.line + '\n';
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (core::nests_deeper(line)) {
      continue;
    }
    const json record = json::parse(line, nullptr, false);
    if (record.is_object()) {
      const json id = record.value("id", json());
      journal +=
          run::journal_line(head.checksum, digest_in(record), id.is_string() ? id.get<std::string>() : "", record);
      journal += '\n';
    }
  }
  return journal;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text(data, size);
  read(std::string(text));
  read(sealed(text));
  return 0;
}
