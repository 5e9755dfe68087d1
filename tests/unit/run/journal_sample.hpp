// A journal as a run writes it, for the tests of its lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "run/journal_text.hpp"
#include "tests/unit/report/sample_record.hpp"

namespace numcheck::run::test {

using nlohmann::json;

inline json record_of(std::int64_t k, const std::string& status) {
  const plan::Case c = report::testing::sample_case("fp32", k);
  verdict::CaseResult result = report::testing::sample_result(c, {});
  json record = report::to_json(result);
  record["status"] = status;
  return record;
}

inline core::Digest digest_of_case(std::int64_t k) {
  return report::testing::sample_case("fp32", k).digest;
}

inline std::string line_of(std::string_view head, std::int64_t k, const json& record) {
  return journal_line(head, digest_of_case(k), report::testing::sample_case("fp32", k).id, record);
}

/// A journal as a run writes it: cases with and without a device's results, one that ran twice, one that crashed.
inline std::vector<std::string> sample_lines() {
  const JournalHead head = journal_head({{"plan digest", "1"}, {"shard", "0/1"}});
  const plan::Case whole = report::testing::sample_case("fp32", 64);
  const json full = report::to_json(report::testing::sample_result(whole, {{}}));
  return {head.line,
          line_of(head.checksum, 1, record_of(1, "unsupported")),
          journal_line(head.checksum, whole.digest, whole.id, full),
          line_of(head.checksum, 2, record_of(2, "crashed")),
          line_of(head.checksum, 3, record_of(3, "error")),
          line_of(head.checksum, 2, record_of(2, "fail")),
          line_of(head.checksum, 4, record_of(4, "pass"))};
}

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += line + '\n';
  }
  return text;
}

}  // namespace numcheck::run::test
