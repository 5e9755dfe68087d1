#include "report/case_ranges.hpp"

#include <algorithm>

namespace numcheck::report {
namespace {

constexpr std::size_t kTop = 1;      // of the report's own members
constexpr std::size_t kInCases = 2;  // of the elements of "cases"
constexpr std::size_t kLongestKey = 16;

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace

void CaseRanges::take(std::string_view piece) {
  for (std::size_t i = 0; i < piece.size(); ++i) {
    const char c = piece[i];
    if (in_string_) {
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = false;
      } else if (const bool plain_text = in_cases_; plain_text) {
        // Most of a report: on to what ends the string.
        const std::size_t next = std::min(piece.find_first_of("\"\\", i), piece.size());
        at_ += next - i - 1;
        i = next - 1;
      }
      if (!in_cases_) {
        head_ += c;
        if (in_string_ && depth_ == kTop && key_.size() < kLongestKey) {
          key_ += c;
        }
      }
    } else {
      take_structure(c);
    }
    ++at_;
  }
}

void CaseRanges::begin_case() {
  sound_ = sound_ && !wants_comma_;
  cases_.push_back({at_, 0});
}

void CaseRanges::end_case() {
  cases_.back().end = at_ + 1;
  wants_comma_ = true;
  wants_case_ = false;
}

void CaseRanges::take_structure(char c) {
  const bool in_element = in_cases_ && depth_ > kInCases;
  const bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
  if (in_cases_ && !in_element) {
    if (opens) {
      begin_case();
    } else if (c == ',') {
      sound_ = sound_ && wants_comma_;
      wants_comma_ = false;
      wants_case_ = true;
    } else if (c == ']') {
      sound_ = sound_ && !wants_case_;
      in_cases_ = false;
    } else {
      sound_ = sound_ && is_blank(c);
    }
  }
  if (!in_cases_) {
    head_ += c;
    if (c == '"' && depth_ == kTop) {
      key_.clear();
      after_key_ = false;
    } else if (c == ':' && depth_ == kTop) {
      after_key_ = true;
    } else if (c == '[' && depth_ == kTop && after_key_ && key_ == "cases") {
      in_cases_ = true;
      wants_comma_ = wants_case_ = false;
      ++lists_;
    } else if (c == ',' && depth_ == kTop) {
      after_key_ = false;
    }
  }
  in_string_ = c == '"';
  depth_ += opens ? 1 : 0;
  deepest_ = std::max(deepest_, depth_);
  depth_ -= closes && depth_ > 0 ? 1 : 0;
  if (in_element && closes && depth_ == kInCases) {
    end_case();
  }
}

}  // namespace numcheck::report
