#include "reference/attention_gradient_sums.hpp"

#include <cmath>
#include <utility>

#include "tolerance/attention_bwd_model.hpp"

namespace numcheck::reference {

GradientOutput::GradientOutput(std::string_view port, std::int64_t rows, std::int64_t channels, bool only_values)
    : out(port, static_cast<std::size_t>(rows * channels), only_values), values_only(only_values) {
  for (std::size_t f = 0; f < static_cast<std::size_t>(tolerance::GradientFact::count) && !only_values; ++f) {
    facts.emplace_back(static_cast<std::size_t>(rows));
  }
}

op::OutputValues GradientOutput::take() && {
  op::OutputValues values = std::move(out).take();
  values.row_facts = std::move(facts);
  return values;
}

GradientSums::GradientSums(GradientFacts::Of what, const AttentionGradients& g, std::int64_t rows,
                           std::int64_t channels)
    : value(static_cast<std::size_t>(rows * channels)),
      weighted(g.values_only() ? 0 : value.size()),
      squared(weighted.size()),
      facts(what, g, g.values_only() ? 0 : static_cast<std::size_t>(rows)) {}

void GradientSums::add(const GradientTile& tile, const std::vector<double>& factor, bool to_keys, const HeadRows& rows,
                       std::int64_t channels) {
  tile.add(factor, to_keys, rows, channels, value);
  if (!squared.empty()) {
    tile.add_squares(factor, to_keys, rows, channels, weighted, squared);
  }
}

void store(GradientOutput& to, const BlockPlace& place, const GradientSums& sums, double factor) {
  for (std::int64_t i = 0; i < place.positions.size(); ++i) {
    const std::int64_t position = place.positions.begin + i;
    for (std::int64_t c = 0; c < place.channels; ++c) {
      const auto at = static_cast<std::size_t>(place.elements.first + position * place.elements.stride + c);
      const auto from = static_cast<std::size_t>(i * place.channels + c);
      if (to.values_only) {
        to.out.set(at, factor * sums.value[from]);
      } else {
        to.out.set(at, factor * sums.value[from], std::fabs(factor) * std::sqrt(sums.weighted[from]),
                   factor * factor * sums.squared[from]);
      }
    }
    if (!to.values_only) {
      sums.facts.store(static_cast<std::size_t>(i), to.facts, static_cast<std::size_t>(place.row + position));
    }
  }
}

void store_means(GradientOutput& to, const BlockPlace& place, std::span<const double> sums, double factor) {
  for (std::int64_t i = 0; i < place.positions.size(); ++i) {
    const std::int64_t first = place.elements.first + (place.positions.begin + i) * place.elements.stride;
    for (std::int64_t c = 0; c < place.channels; ++c) {
      to.facts[tolerance::kMean][static_cast<std::size_t>(first + c)] =
          static_cast<float>(factor * sums[static_cast<std::size_t>(i * place.channels + c)]);
    }
  }
}

double common_square(const double* x, std::span<const double> sums, double weight) {
  double square = 0;
  for (std::size_t c = 0; c < sums.size() && weight > 0; ++c) {
    square += (x[c] * sums[c] / weight) * (x[c] * sums[c] / weight);
  }
  return square;
}

}  // namespace numcheck::reference
