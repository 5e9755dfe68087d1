#include "report/report_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/parallel.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using Take = std::function<void(std::string_view)>;

/// The JSON `written` as it stands `depth` levels further in.
void append_indented(std::string_view written, std::size_t depth, std::string& text) {
  for (std::size_t start = 0; start < written.size();) {
    const std::size_t end = std::min(written.find('\n', start), written.size() - 1) + 1;  // strings have no line breaks
    text += written.substr(start, end - start);
    if (written[end - 1] == '\n') {
      text.append(depth, ' ');
    }
    start = end;
  }
}

/// A member of the report that is a list: the cases of a large run take seconds to write on one thread, and gigabytes of
/// text if all are written before the first one is taken.
void write_list(std::size_t size, const RecordTextAt& text_at, const Take& take) {
  constexpr std::size_t kItemsPerChunk = 256, kChunksAtOnce = 32;
  take("[");
  for (std::size_t first = 0; first < size; first += kChunksAtOnce * kItemsPerChunk) {
    const std::size_t count = std::min(size - first, kChunksAtOnce * kItemsPerChunk);
    std::vector<std::string> chunks((count + kItemsPerChunk - 1) / kItemsPerChunk);
    core::parallel_chunks(count, kItemsPerChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
      for (std::size_t i = first + begin; i < first + end; ++i) {
        chunks[chunk] += i == 0 ? "\n  " : ",\n  ";
        append_indented(text_at(i), 2, chunks[chunk]);
      }
    });
    for (std::string& chunk : chunks) {
      take(std::exchange(chunk, {}));
    }
  }
  take("\n ]");
}

}  // namespace

std::string record_text(const json& record, Characters characters) {
  return record.dump(1, ' ', characters == Characters::ascii, json::error_handler_t::replace);
}

void write_report_text(const json& report, const RecordTextAt& text_at, Characters characters, const Take& take) {
  const char* before = "{\n \"";
  for (const auto& [name, value] : report.items()) {
    take(before + name + "\": ");
    before = ",\n \"";
    if (name == "cases" && !value.empty()) {
      write_list(value.size(), text_at, take);
    } else if (value.is_array() && !value.empty()) {
      write_list(
          value.size(), [&list = value, characters](std::size_t i) { return record_text(list[i], characters); }, take);
    } else {
      std::string text;
      append_indented(record_text(value, characters), 1, text);
      take(text);
    }
  }
  take("\n}\n");
}

std::string report_text(const json& report) {
  std::string text;
  const json& cases = report.contains("cases") ? report.at("cases") : json::array();
  write_report_text(
      report, [&cases](std::size_t i) { return record_text(cases[i], Characters::unicode); }, Characters::unicode,
      [&text](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace numcheck::report
