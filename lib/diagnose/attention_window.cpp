// Hypotheses about a sliding window that nobody has declared: where errors begin tells its size.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "diagnose/attention_positions.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {
namespace {

Hypothesis with_window(const Evidence& evidence, std::string_view side, std::int64_t size) {
  const plan::Case& c = evidence.subject.c;
  Trial trial = as_declared(evidence.subject);
  trial.c.params[*op::field_index(*c.op, side)] = size;
  return {.name = fmt::format("{}={}", side, size),
          .family = std::string(side),
          .cause = fmt::format("it was computed with a sliding window: {} = {}, and none is declared", side, size),
          .remedy = fmt::format("Set the window to what is meant on both sides (sliding_window, window_size); if {} is "
                                "right, give --param {}={}.",
                                size, side, size),
          .trial = std::move(trial),
          .is_measured = true};
}

/// Query i has the key on the diagonal, own = i or i + sk - sq, and loses key 0 first if own > window_left, and the last key
/// if own + window_right < sk - 1. A window_right of 0 is a causal mask, which has a name of its own.
std::vector<Hypothesis> windows(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  const bool is_attention = c.op->name == "attention_fwd" || c.op->name == "attention_bwd";
  if (!is_attention || (evidence.port != "o" && evidence.port != "dq") || !evidence.sample.all()) {
    return {};
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  const Positions wrong = wrong_positions(evidence);
  if (p.layout == "thd" || wrong.last < wrong.first || port_of(evidence).rows != p.sq) {
    return {};
  }
  std::vector<Hypothesis> all;
  for (const std::int64_t shift : std::set<std::int64_t>{0, p.sk - p.sq}) {
    const std::int64_t left = wrong.first + shift - 1, right = p.sk - 2 - (wrong.last + shift);
    if (p.window_left < 0 && left >= 0 && left < p.sk) {
      all.push_back(with_window(evidence, "window_left", left));
    }
    if (p.window_right < 0 && right > 0 && right < p.sk && !p.mask.ends_with("causal") &&
        !p.mask.ends_with("bottom_right")) {
      all.push_back(with_window(evidence, "window_right", right));
    }
  }
  return all;
}

constexpr std::array kRows = {CatalogueRow{"window_left=NUMBER, window_right=NUMBER",
                                           "attention with a sliding window that is not declared", &windows}};

}  // namespace

Positions wrong_positions(const Evidence& evidence) {
  const op::Port port = port_of(evidence);
  Positions found{port.rows, -1};
  for (std::size_t i = 0; i < evidence.is_wrong.size(); ++i) {
    if (evidence.is_wrong[i] != 0) {
      const std::int64_t position = static_cast<std::int64_t>(i) / port.cols % port.rows;
      found.first = std::min(found.first, position);
      found.last = std::max(found.last, position);
    }
  }
  return found;
}

std::span<const CatalogueRow> attention_window_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
