#include "reference/attention_lost_queries.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "op/attention_bwd.hpp"
#include "reference/attention_compared.hpp"
#include "reference/attention_tile.hpp"
#include "reference/dequantised.hpp"

namespace numcheck::reference {
namespace {

constexpr std::int64_t kQueriesOfBlock = 64;
constexpr std::int64_t kLeastChannelsPerBlock = 2;  // numbers that must agree with each m_B

double square(double x) {
  return x * x;
}

/// dk or dv, and how to find the parts of its rows.
struct SummedOutput {
  Compared output;
  std::int64_t channels;
  bool of_keys;  ///< dk
  double unit;   ///< roundoff of its format
};

/// One key of one head of keys.
struct Row {
  std::span<const double> got, expected;
  double rms = 0;  ///< of what is expected

  Row(const Compared& output, std::size_t first, std::size_t channels)
      : got(output.got.subspan(first, channels)), expected(output.expected.subspan(first, channels)) {
    double squares = 0;
    for (const double y : expected) {
      squares += std::isfinite(y) ? square(y) : 0;
    }
    rms = std::sqrt(squares / static_cast<double>(channels));
  }
  [[nodiscard]] std::vector<double> errors() const {
    std::vector<double> e(got.size());
    std::ranges::transform(got, expected, e.begin(), [](double x, double y) {
      const double difference = x - y;
      return std::isfinite(difference) ? difference : 0;
    });
    return e;
  }
};

double square_of(std::span<const double> x) {
  double sum = 0;
  for (const double y : x) {
    sum += square(y);
  }
  return sum;
}

/// Of e + sign x.
double square_of_sum(std::span<const double> e, double sign, std::span<const double> x) {
  double sum = 0;
  for (std::size_t c = 0; c < e.size(); ++c) {
    sum += square(e[c] + sign * x[c]);
  }
  return sum;
}

/// Squared errors of a row beyond what its rounding and `noise`, the relative error of most rows, may do.
double beyond(const Row& row, std::span<const double> errors, double unit, double noise) {
  constexpr double kTimesNoise = 3;
  double sum = 0;
  for (std::size_t c = 0; c < errors.size(); ++c) {
    const double allowed = unit * std::max(std::fabs(row.expected[c]), row.rms) + kTimesNoise * noise * row.rms;
    sum += square(std::fmax(std::fabs(errors[c]) - allowed, 0));
  }
  return sum;
}

/// Calls body(batch, head, key, row) for all keys of all heads of keys that count.
template <class Body>
void for_each_row(const SummedOutput& of, const AttentionProblem& problem, const Body& body) {
  const op::AttentionParams& p = problem.params();
  for (std::int64_t batch = 0; batch < p.batches; ++batch) {
    for (std::int64_t head = 0; head < p.key_heads(); ++head) {
      const op::HeadPlace place = op::head_place(p, op::Side::keys, batch, head, of.channels);
      for (std::int64_t j = 0; j < problem.lengths(batch).keys; ++j) {
        body(batch, head, j, Row(of.output, element_at(place, j), static_cast<std::size_t>(of.channels)));
      }
    }
  }
}

/// A row with errors that others do not have.
struct Suspect {
  std::int64_t batch, head, key;
  double wrong;  ///< squared errors beyond those that are allowed
};

struct Suspects {
  std::vector<Suspect> rows;
  double noise = 0;  ///< median of the relative errors of rows
};

Suspects suspects_of(const SummedOutput& of, const AttentionProblem& problem) {
  Suspects found;
  std::vector<double> relative;
  for_each_row(of, problem, [&](std::int64_t, std::int64_t, std::int64_t, const Row& row) {
    if (row.rms > 0) {
      relative.push_back(square_of(row.errors()) / (static_cast<double>(of.channels) * square(row.rms)));
    }
  });
  if (relative.empty()) {
    return found;
  }
  const auto middle = relative.begin() + static_cast<std::ptrdiff_t>(relative.size() / 2);
  std::ranges::nth_element(relative, middle);
  found.noise = std::sqrt(*middle);
  for_each_row(of, problem, [&](std::int64_t batch, std::int64_t head, std::int64_t j, const Row& row) {
    const double wrong = beyond(row, row.errors(), of.unit, found.noise);
    if (wrong > 0) {
      found.rows.push_back({batch, head, j, wrong});
    }
  });
  return found;
}

/// What each block of queries adds to some keys: keys x channels.
class Parts {
 public:
  Parts(const AttentionGradients& g, const SummedOutput& of, std::int64_t batch, std::int64_t of_keys,
        const Positions& keys)
      : channels_(static_cast<std::size_t>(of.channels)) {
    const op::AttentionParams& p = g.params();
    const std::int64_t sharing = p.heads / p.key_heads();
    GradientTile tile(g);
    for (std::int64_t index = of_keys * sharing; index < (of_keys + 1) * sharing; ++index) {
      const GradientHead& head = g.head(batch, index);
      for (std::int64_t i = 0; i < head.lengths.queries; i += kQueriesOfBlock) {
        const Positions queries{i, std::min(i + kQueriesOfBlock, head.lengths.queries)};
        if (!tile.load(head, queries, keys, {})) {
          continue;
        }
        std::vector<double>& part = parts_.emplace_back(static_cast<std::size_t>(keys.size()) * channels_);
        tile.add(of.of_keys ? tile.dt() : tile.dropped(), true, of.of_keys ? head.queries : head.gradient, of.channels,
                 part);
        const double factor = of.of_keys ? g.problem().factor() : 1;
        std::ranges::for_each(part, [factor](double& x) { x *= factor; });
      }
    }
  }
  [[nodiscard]] std::size_t count() const noexcept { return parts_.size(); }
  [[nodiscard]] std::span<const double> part(std::size_t block, std::int64_t key) const {
    return std::span(parts_[block]).subspan(static_cast<std::size_t>(key) * channels_, channels_);
  }

 private:
  std::size_t channels_;
  std::vector<std::vector<double>> parts_;
};

struct Lost {
  std::vector<double> left;  ///< errors without those of lost blocks
  bool some = false, all = true;
};

/// Takes or gives back one block after the other as long as errors become smaller.
Lost lost_of(const Parts& parts, std::int64_t key, std::vector<double> errors) {
  std::vector<double> signs(parts.count(), 1);  // by which a part is added to the errors if it changes sides
  double square_left = square_of(errors);
  for (bool better = true; better;) {
    better = false;
    std::size_t best = 0;
    for (std::size_t block = 0; block < parts.count(); ++block) {
      const double left = square_of_sum(errors, signs[block], parts.part(block, key));
      if (left < square_left) {
        best = block;
        square_left = left;
        better = true;
      }
    }
    if (better) {
      const std::span<const double> part = parts.part(best, key);
      std::ranges::transform(errors, part, errors.begin(),
                             [sign = signs[best]](double e, double x) { return e + sign * x; });
      signs[best] = -signs[best];
    }
  }
  Lost lost{std::move(errors)};
  for (std::size_t block = 0; block < parts.count(); ++block) {
    const bool counts = square_of(parts.part(block, key)) > 0;
    lost.some = lost.some || signs[block] < 0;
    lost.all = lost.all && (signs[block] < 0 || !counts);
  }
  return lost;
}

struct Explained {
  double all = 0, left = 0;
  double partial = 0;  ///< of rows that lack some blocks, but not all
};

Explained operator+(const Explained& a, const Explained& b) {
  return {a.all + b.all, a.left + b.left, a.partial + b.partial};
}

/// Of rows of one head of keys whose keys are in one tile.
Explained explained(const AttentionGradients& g, const SummedOutput& of, std::span<const Suspect> rows, double noise) {
  const Suspect& first = rows.front();
  const std::int64_t begin = first.key / kTile * kTile;
  const Positions keys{begin, std::min(begin + kTile, g.problem().lengths(first.batch).keys)};
  const Parts parts(g, of, first.batch, first.head, keys);
  const bool enough = static_cast<std::int64_t>(parts.count()) * kLeastChannelsPerBlock <= of.channels;
  const op::HeadPlace place = op::head_place(g.params(), op::Side::keys, first.batch, first.head, of.channels);
  Explained sum;
  for (const Suspect& suspect : rows) {
    const Row row(of.output, element_at(place, suspect.key), static_cast<std::size_t>(of.channels));
    sum.all += suspect.wrong;
    if (!enough) {
      sum.left += suspect.wrong;
      continue;
    }
    const Lost lost = lost_of(parts, suspect.key - begin, row.errors());
    sum.left += beyond(row, lost.left, of.unit, noise);
    sum.partial += lost.some && !lost.all ? suspect.wrong : 0;
  }
  return sum;
}

void explain(const SummedOutput& of, const AttentionGradients& g, std::vector<op::Finding>& findings) {
  constexpr double kLeastPartial = 0.1;
  const Suspects suspects = suspects_of(of, g.problem());
  if (suspects.rows.empty()) {
    return;
  }
  std::vector<std::span<const Suspect>> tiles;
  const auto tile_of = [](const Suspect& s) { return s.key / kTile; };
  for (std::size_t n = 0, begin = 0; n < suspects.rows.size(); ++n) {
    const Suspect& a = suspects.rows[n];
    const bool last = n + 1 == suspects.rows.size();
    const Suspect& b = suspects.rows[last ? n : n + 1];
    if (last || a.batch != b.batch || a.head != b.head || tile_of(a) != tile_of(b)) {
      tiles.push_back(std::span(suspects.rows).subspan(begin, n + 1 - begin));
      begin = n + 1;
    }
  }
  std::vector<Explained> of_tiles(tiles.size());
  core::parallel_for(tiles.size(), [&](std::size_t n) { of_tiles[n] = explained(g, of, tiles[n], suspects.noise); });
  Explained all;
  for (const Explained& tile : of_tiles) {
    all = all + tile;
  }
  if (all.partial >= kLeastPartial * all.all) {
    add_if_explained(findings, op::kLostQueries, of.output, op::Finding::About::numbers, 1 - all.left / all.all,
                     "keys lack the parts of whole blocks of 64 queries");
  }
}

}  // namespace

void explain_lost_queries(const op::FindingRequest& request, std::vector<op::Finding>& findings) {
  const auto p = op::from_params<op::AttentionBwdParams>(*request.params);
  std::optional<Compared> dk = compared(request, "dk"), dv = compared(request, "dv");
  if ((!dk && !dv) || p.sq <= kQueriesOfBlock) {  // of one block, what is lost is a head
    return;
  }
  const Dequantised inputs(request.inputs);
  const AttentionGradients g(p, inputs.operands(), true);
  for (const std::optional<Compared>& output : {dk, dv}) {
    if (output) {
      const bool of_keys = output->port == "dk";
      explain({*output, of_keys ? p.d : p.value_channels(), of_keys, core::dtype_info(output->dtype).unit_roundoff}, g,
              findings);
    }
  }
}

}  // namespace numcheck::reference
