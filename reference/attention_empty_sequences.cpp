#include "reference/attention_empty_sequences.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "reference/attention_compared.hpp"

namespace numcheck::reference {
namespace {

using About = op::Finding::About;

constexpr std::string_view kCause = "sequences without queries or without keys are left unwritten";

/// An output whose positions are those of queries or of keys.
struct Output {
  std::string_view port;
  op::Side side = op::Side::queries;
  std::int64_t channels = 0;  ///< 1 of lse
};

op::HeadPlace place_of(const op::AttentionParams& p, const Output& output, std::int64_t batch, std::int64_t head) {
  return output.port == "lse" ? op::statistic_place(p, batch, head)
                              : op::head_place(p, output.side, batch, head, output.channels);
}

/// Which elements are those of sequences without queries or without keys, positions beyond their lengths included.
std::vector<bool> skipped_elements(const AttentionProblem& problem, const Output& output, std::size_t count) {
  const op::AttentionParams& p = problem.params();
  std::vector<bool> skipped(count);
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    const Lengths lengths = problem.lengths(batch);
    if (lengths.queries > 0 && lengths.keys > 0) {
      continue;
    }
    for (std::int64_t head = 0; head < op::heads_of(p, output.side); ++head) {
      const op::HeadPlace place = place_of(p, output, batch, head);
      for (std::int64_t i = 0; i < op::positions(p, output.side, batch); ++i) {
        std::fill_n(skipped.begin() + place.first + i * place.stride, output.channels, true);
      }
    }
  }
  return skipped;
}

/// What is wrong with an output, and the part of it that is in such sequences.
struct Wrong {
  double broken = 0, unwritten = 0;         ///< elements
  double squares = 0, skipped_squares = 0;  ///< squared errors of numbers
};

Wrong wrong_with(const Compared& output, const std::vector<bool>& skipped) {
  Wrong wrong;
  for (const std::size_t at : output.judged()) {
    const double error = output.error(at);
    wrong.squares += error * error;
    wrong.skipped_squares += skipped[at] ? error * error : 0;
    if (output.is_broken(at)) {
      ++wrong.broken;
      wrong.unwritten += skipped[at] && output.is_unwritten(at) ? 1 : 0;
    }
  }
  return wrong;
}

}  // namespace

void explain_empty_sequences(const op::FindingRequest& request, const AttentionProblem& problem,
                             std::vector<op::Finding>& findings) {
  const op::AttentionParams& p = problem.params();
  if (!p.has_lengths()) {
    return;
  }
  const std::array outputs = {Output{"o", op::Side::queries, p.value_channels()}, Output{"lse", op::Side::queries, 1},
                              Output{"dq", op::Side::queries, p.d}, Output{"dk", op::Side::keys, p.d},
                              Output{"dv", op::Side::keys, p.value_channels()}};
  for (const Output& output : outputs) {
    if (const std::optional<Compared> values = compared(request, output.port)) {
      const Wrong wrong = wrong_with(*values, skipped_elements(problem, output, values->got.size()));
      add_if_explained(findings, op::kEmptySequences, *values, About::unwritten, wrong.unwritten / wrong.broken,
                       std::string(kCause));
      if (output.side == op::Side::keys && p.key_heads() < p.heads) {
        add_if_explained(findings, op::kEmptySequences, *values, About::numbers, wrong.skipped_squares / wrong.squares,
                         std::string(kCause));
      }
    }
  }
}

}  // namespace numcheck::reference
