#include "eligibility/gate_text.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace numcheck::eligibility {

std::string fill_in(std::string_view sentence, const Facts& facts) {
  std::string text;
  for (;;) {
    const std::size_t open = sentence.find('{');
    text += sentence.substr(0, open);
    if (open == std::string_view::npos) {
      return text;
    }
    const std::size_t close = sentence.find('}', open);
    const std::string_view name = sentence.substr(open + 1, close == std::string_view::npos ? close : close - open - 1);
    const auto found = std::ranges::find(kNumberFacts, name);
    if (close == std::string_view::npos || found == kNumberFacts.end()) {
      throw core::InternalError("configs/attention_gates.json: a sentence names the number \"" + std::string(name) +
                                "\", which does not exist");
    }
    const auto number = facts.number(static_cast<NumberFact>(found - kNumberFacts.begin()));
    text += number ? std::to_string(*number) : "?";
    sentence.remove_prefix(close + 1);
  }
}

}  // namespace numcheck::eligibility
