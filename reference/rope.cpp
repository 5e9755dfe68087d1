#include "op/rope.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "reference/mistakes.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

constexpr double kSincosUlps = 2;  // sincosf, full range: CUDA C++ Programming Guide, mathematical functions

double cosine(double angle, double) {
  return std::cos(angle);
}
double sine(double angle, double) {
  return std::sin(angle);
}
Tracked cosine(double angle, const Tracked&) {
  return tolerance::function_of(Tracked(angle), std::cos(angle), 1, kSincosUlps);
}
Tracked sine(double angle, const Tracked&) {
  return tolerance::function_of(Tracked(angle), std::sin(angle), 1, kSincosUlps);
}

/// The partner of rotated channel i.
std::size_t partner_of(const op::RopeParams& p, std::size_t i) {
  const auto half = static_cast<std::size_t>(p.rotated() / 2);
  return p.interleaved ? i ^ 1U : i < half ? i + half : i - half;
}

bool is_first_of_pair(const op::RopeParams& p, std::size_t i) {
  return p.interleaved ? i % 2 == 0 : i < static_cast<std::size_t>(p.rotated() / 2);
}

/// Token of a row of x.
std::int64_t token_of(const op::RopeParams& p, std::int64_t row) {
  const std::int64_t token = row / p.heads;
  return p.layout == "sbhd" ? token / p.batch : token % p.seq;
}

/// Of the angles of a token, which its heads share.
template <class Scalar>
struct Turn {
  std::vector<Scalar> cosines, sines;

  Turn(const op::RopeParams& p, bool backward, const double* angles) {
    const auto rotated = static_cast<std::size_t>(p.rotated());
    cosines.reserve(rotated);
    sines.reserve(rotated);
    for (std::size_t i = 0; i < rotated; ++i) {
      cosines.push_back(cosine(angles[i], Scalar()));
      sines.push_back(sine(angles[backward ? partner_of(p, i) : i], Scalar()));
    }
  }
};

template <class Scalar>
void rotate(const op::RopeParams& p, bool backward, const double* x, const Turn<Scalar>& turn, std::size_t first,
            TrackedOutput& out) {
  const auto rotated = static_cast<std::size_t>(p.rotated());
  for (std::size_t i = 0; i < static_cast<std::size_t>(p.dim); ++i) {
    if (i >= rotated) {
      out.set(first + i, Scalar(x[i]));
      out.set_terms(first + i, std::fabs(x[i]));
      continue;
    }
    const std::size_t partner = partner_of(p, i);
    const Scalar turned = Scalar(x[partner]) * turn.sines[i];
    const Scalar kept = Scalar(x[i]) * turn.cosines[i];
    const bool minus = is_first_of_pair(p, i) != backward;
    out.set(first + i, minus ? kept - turned : kept + turned);
    out.set_terms(first + i, std::fabs(tolerance::value_of(kept)) + std::fabs(tolerance::value_of(turned)));
  }
}

op::Values values(const op::ReferenceRequest& request, bool backward) {
  const auto p = op::from_params<op::RopeParams>(*request.params);
  const op::Operand& x = op::operand_named(request.inputs, backward ? "dy" : "x");
  const op::Operand& freqs = op::operand_named(request.inputs, "freqs");
  TrackedOutput out(backward ? "dx" : "y", x.elements(), request.values_only);
  out.keep_terms(2);
  const auto all_heads = [&]<class Scalar>(std::int64_t first_row, const Scalar& /*kind*/) {
    const std::int64_t angle_row = p.start + token_of(p, first_row);
    const Turn<Scalar> turn(p, backward, freqs.data + angle_row * p.rotated());
    for (std::int64_t row = first_row; row < first_row + p.heads; ++row) {
      const auto first = static_cast<std::size_t>(row * p.dim);
      rotate<Scalar>(p, backward, x.data + first, turn, first, out);
    }
  };
  core::parallel_for(static_cast<std::size_t>(x.rows / p.heads), [&](std::size_t group) {
    const std::int64_t row = static_cast<std::int64_t>(group) * p.heads;
    request.values_only ? all_heads(row, 0.0) : all_heads(row, Tracked());
  });
  op::Values result;
  result.outputs.push_back(std::move(out).take());
  return result;
}

void derive(const op::DeriveRequest& request, std::span<double> values) {
  const auto p = op::from_params<op::RopeParams>(*request.params);
  if (request.port->name == "start_positions") {
    std::ranges::fill(values, static_cast<double>(p.start));
    return;
  }
  const std::int64_t width = p.rotated();
  for (std::int64_t row = 0; row < request.port->rows; ++row) {
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t pair = p.interleaved ? i / 2 : i % (width / 2);
      const double frequency = std::pow(p.base, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
      values[static_cast<std::size_t>(row * width + i)] = static_cast<double>(p.position + row) * frequency;
    }
  }
}

op::Reference reference_of(op::Values (*function)(const op::ReferenceRequest&), std::string_view version) {
  op::Reference reference;
  reference.values = function;
  reference.derive = &derive;
  reference.mistakes = &rope_mistakes;
  reference.version = version;
  return reference;
}

}  // namespace

op::Reference rope_fwd_reference() {
  return reference_of([](const op::ReferenceRequest& request) { return values(request, false); }, "rope_fwd-1");
}

op::Reference rope_bwd_reference() {
  return reference_of([](const op::ReferenceRequest& request) { return values(request, true); }, "rope_bwd-1");
}

}  // namespace numcheck::reference
