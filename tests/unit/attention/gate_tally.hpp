// How often a library and the rows of configs/attention_gates.json agree on whether it takes a case.
#pragma once

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eligibility/attention_gates.hpp"

namespace numcheck::test {

/// Whether a library accepts a case, and what it says if it does not.
struct Reply {
  bool accepted = false;
  std::string words;
};

class GateTally {
 public:
  explicit GateTally(std::string who) : who_(std::move(who)) {}

  /// Prints a disagreement. The result is a row that wrongly claims a refusal, or null.
  const eligibility::Refusal* add(const std::vector<eligibility::Refusal>& rows, const Reply& reply,
                                  std::string_view name) {
    ++cases_;
    const auto claim = std::ranges::find_if(rows, [](const eligibility::Refusal& row) {
      return row.certain && row.gate->answer == eligibility::Answer::refused;
    });
    if (claim != rows.end() && reply.accepted) {
      std::cout << who_ << " accepts what \"" << claim->gate->name << "\" claims to be refused: " << name << '\n';
      return &*claim;
    }
    if (!rows.empty() && reply.accepted) {
      std::cout << who_ << " accepts what documents exclude (" << rows.front().gate->name << "): " << name << '\n';
    } else if (rows.empty() && !reply.accepted) {
      ++unexplained_;
      std::cout << who_ << " refuses what no row excludes: " << name << ": " << reply.words << '\n';
    } else {
      ++agreed_;
      accepted_ += reply.accepted ? 1 : 0;
    }
    return nullptr;
  }

  void print() const {
    std::cout << who_ << " and the table agree on " << agreed_ << " of " << cases_ << " cases, " << accepted_
              << " of them accepted; " << unexplained_ << " are refused without a row\n";
  }

 private:
  std::string who_;
  int cases_ = 0;
  int agreed_ = 0;
  int accepted_ = 0;
  int unexplained_ = 0;
};

}  // namespace numcheck::test
