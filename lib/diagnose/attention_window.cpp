// Hypotheses about a sliding window that is not the declared one: where errors begin tells its size.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "diagnose/attention_positions.hpp"
#include "diagnose/attention_window_scan.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {
namespace {

Trial trial_with(const Evidence& evidence, const Windows& windows) {
  Trial trial = as_declared(evidence.subject);
  trial.c.params[*op::field_index(*trial.c.op, "window_left")] = windows.left;
  trial.c.params[*op::field_index(*trial.c.op, "window_right")] = windows.right;
  return trial;
}

/// Those of `windows` that are not declared, as NAME{}NUMBER, joined.
std::string spelled(const Windows& windows, const Windows& declared, std::string_view equals, std::string_view and_) {
  std::vector<std::string> sides;
  if (windows.left != declared.left) {
    sides.push_back(fmt::format("window_left{}{}", equals, windows.left));
  }
  if (windows.right != declared.right) {
    sides.push_back(fmt::format("window_right{}{}", equals, windows.right));
  }
  return fmt::format("{}", fmt::join(sides, and_));
}

Hypothesis with_windows(const Evidence& evidence, const Windows& windows, const Windows& declared) {
  const bool both = windows.left != declared.left && windows.right != declared.right;
  const bool is_left = windows.left != declared.left;
  const std::int64_t before = is_left ? declared.left : declared.right;
  const bool none_declared = before < 0 && (!both || declared.right < 0);
  const std::string not_declared = none_declared ? std::string("none is declared")
                                   : both        ? fmt::format("{} and {} are declared", declared.left, declared.right)
                                                 : fmt::format("{} is declared", before);
  const std::string_view what = both || (is_left ? windows.left : windows.right) >= 0
                                    ? "with a sliding window"
                                    : "without an end of the window on one side";
  return {
      .name = spelled(windows, declared, "=", " + "),
      .family = both      ? "windows"
                : is_left ? "window_left"
                          : "window_right",
      .cause =
          fmt::format("it was computed {}: {}, and {}", what, spelled(windows, declared, " = ", " and "), not_declared),
      .remedy = fmt::format("Set the window to what is meant on both sides (sliding_window, window_size: some count "
                            "the query's own key, others do not); if that of the outputs is right, give --param {}.",
                            spelled(windows, declared, "=", " --param ")),
      .trial = trial_with(evidence, windows),
      .is_measured = true};
}

/// Whether that is a mistake that has a name of its own: window_missing, window_from_top_left.
bool is_known_mistake(const Evidence& evidence, const Windows& windows) {
  const Subject& subject = evidence.subject;
  const op::Reference& reference = prepare::find_row(subject.catalog, subject.c.op->name)->reference;
  const op::Params params = trial_with(evidence, windows).c.params;
  return reference.mistakes != nullptr &&
         std::ranges::any_of(reference.mistakes(subject.c.params, *subject.c.mode), [&](const op::Mistake& mistake) {
           return mistake.then == nullptr && mistake.instead == nullptr && mistake.params == params;
         });
}

/// The queries that are wrong if those are the windows.
Positions wrong_with(const Evidence& evidence, const Windows& windows) {
  constexpr double kFlops = 2e9;  // of products; attention is computed as a whole
  FactsByPort facts;
  static_cast<void>(judge(evidence.subject, trial_with(evidence, windows), kFlops, Depth::gates, &facts));
  return positions_of(facts[std::string(evidence.port)].is_wrong, port_of(evidence));
}

/// One side of a window, which ends that many keys before (after) the diagonal if the queries from `first` on (up to `last`) are
/// wrong without that: query i has the key on the diagonal, own = i or i + sk - sq, and loses key 0 first if own > window_left, and
/// the last key if own + window_right < sk - 1.
struct Side {
  bool is_left = true;
  std::int64_t declared = -1;

  [[nodiscard]] std::int64_t size(const Positions& wrong, std::int64_t shift, std::int64_t keys) const {
    return is_left ? wrong.first + shift - 1 : keys - 2 - (wrong.last + shift);
  }
  [[nodiscard]] Windows of(std::int64_t size, Windows declared_ones) const {
    (is_left ? declared_ones.left : declared_ones.right) = size;
    return declared_ones;
  }
};

/// Smaller windows than the declared one show where errors begin; of larger ones that only says where the declared one would
/// begin to count, and what is expected without one shows where they do.
void add_side(const Evidence& evidence, const op::AttentionParams& p, const Side& side, const Positions& wrong,
              std::vector<Hypothesis>& all) {
  const Windows declared{p.window_left, p.window_right};
  const std::int64_t least = side.is_left ? 0 : 1;  // a window_right of 0 is a causal mask, which has a name of its own
  const auto add = [&](std::int64_t size) {
    if (size >= least && size < p.sk && size != side.declared) {
      all.push_back(with_windows(evidence, side.of(size, declared), declared));
    }
  };
  bool may_be_larger = false;
  for (const std::int64_t shift : std::set<std::int64_t>{0, p.sk - p.sq}) {
    const std::int64_t size = side.size(wrong, shift, p.sk);
    may_be_larger |= side.declared >= 0 && size >= side.declared;
    if (side.declared < 0 || size < side.declared) {
      add(size);
    }
  }
  if (!may_be_larger) {
    return;
  }
  const Positions beyond = wrong_with(evidence, side.of(-1, declared));
  if (beyond.last < beyond.first) {  // a mistake that is known if this is the only side: window_missing
    if (declared.left >= 0 && declared.right >= 0) {
      all.push_back(with_windows(evidence, side.of(-1, declared), declared));
    }
    return;
  }
  constexpr std::int64_t kUnseen = 2;  // queries to which the lost keys hardly matter
  for (const std::int64_t shift : std::set<std::int64_t>{0, p.sk - p.sq}) {
    for (std::int64_t unseen = 0; unseen <= kUnseen; ++unseen) {
      if (const std::int64_t size = side.size(beyond, shift, p.sk) - unseen; size > side.declared) {
        add(size);
      }
    }
  }
}

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
  add_side(evidence, p, {true, p.window_left}, wrong, all);
  if (!p.is_causal()) {
    add_side(evidence, p, {false, p.window_right}, wrong, all);
  }
  const Windows declared{p.window_left, p.window_right};
  const auto add_both = [&](const Windows& both) {
    const bool are_others = both.left != declared.left && both.right != declared.right;
    if (are_others && !is_known_mistake(evidence, both)) {  // of one side, where errors begin tells it
      all.push_back(with_windows(evidence, both, declared));
    }
  };
  if (const std::optional<Windows> told = windows_of_output(evidence, p); told.has_value()) {
    add_both(*told);
  }
  if (declared.left > 0 && declared.right > 0) {
    add_both({declared.left / 2, declared.right / 2});
    add_both({declared.left * 2, declared.right * 2});
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"window_left=NUMBER, window_right=NUMBER",
                 "attention with another sliding window than the declared one, or with one where none is", &windows}};

}  // namespace

Positions positions_of(std::span<const std::uint8_t> is_wrong, const op::Port& port) {
  Positions found{port.rows, -1};
  for (std::size_t i = 0; i < is_wrong.size(); ++i) {
    if (is_wrong[i] != 0) {
      const std::int64_t position = static_cast<std::int64_t>(i) / port.cols % port.rows;
      found.first = std::min(found.first, position);
      found.last = std::max(found.last, position);
    }
  }
  return found;
}

Positions wrong_positions(const Evidence& evidence) {
  return positions_of(evidence.is_wrong, port_of(evidence));
}

std::span<const CatalogueRow> attention_window_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
