#include "metric/setup.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "core/largest_finite.hpp"
#include "core/parallel.hpp"

namespace numcheck::metric {
namespace {

using core::Dtype;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// rtol and atol of two tools for one format.
struct ForeignTolerance {
  double torch_rtol, torch_atol, te_rtol, te_atol;
};

/// PyTorch: torch/testing/_comparison.py, default_tolerances (a format without a row is compared exactly).
/// TransformerEngine: tests/cpp/test_common.cu, getTolerances.
ForeignTolerance foreign_tolerance(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp16:
      return {1e-3, 1e-5, 1e-3, 1e-5};
    case Dtype::bf16:
      return {1.6e-2, 1e-5, 1e-2, 1e-5};
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
      return {0, 0, 1e-2, 1e-2};
    case Dtype::uint8:
    case Dtype::int32:
      return {0, 0, 0, 0};
    case Dtype::fp64:
      return {1e-7, 1e-7, 5e-6, 1e-6};
    default:
      return {1.3e-6, 1e-5, 5e-6, 1e-6};
  }
}

FormatConstants format_constants(const core::DtypeInfo& info) {
  FormatConstants format{};
  format.fraction_scale = std::ldexp(1.0, -info.fraction_bits);
  format.min_normal = std::ldexp(1.0, info.emin);
  format.narrow = info.storage_bytes < 4;
  format.integer = core::is_integer(info.dtype);
  format.max_finite = info.max_finite;
  format.overflow_threshold = info.storage_bytes == 1 ? std::numeric_limits<double>::infinity()
                                                      : info.max_finite + core::ulp(info.max_finite, info.dtype) / 2;
  format.special_from = format.narrow ? format.overflow_threshold * (1 - 0x1p-23) : format.overflow_threshold;
  return format;
}

/// The A from which the bound is as large as the numbers of the format: it asks nothing then. FP32's are taken to end a
/// little earlier, as intermediate results may be larger than the result. What is compared bit by bit has no bound.
double undetermined_from(const Setup& setup) {
  const ModelConstants& model = setup.model;
  const double room = setup.undetermined_bound - model.bound_absolute;
  if (setup.exact || setup.format.integer) {
    return kInfinity;
  }
  return room <= 0 ? 0 : room / (model.bound_magnitude * model.scale);
}

LatticeConstants lattice_constants(const CompareInput& input) {
  const model::ErrorModel& given = *input.model;
  LatticeConstants out{};
  if (!given.spacing || given.exact || input.port->dtype != Dtype::fp32) {
    return out;
  }
  const model::Spacing& spacing = *given.spacing;
  const double scale = std::abs(given.output_scale);
  static_assert(std::tuple_size_v<decltype(spacing.share)> == kLattices);
  out.asked = true;
  out.value = static_cast<float>(spacing.value);
  out.second = static_cast<float>(spacing.second * scale);
  out.magnitude = static_cast<float>(spacing.magnitude * scale);
  out.absolute = static_cast<float>(spacing.absolute * scale);
  std::ranges::transform(spacing.share, std::begin(out.share), [](double share) { return static_cast<float>(share); });
  return out;
}

void check(bool ok, const char* what) {
  if (!ok) {
    throw core::InternalError(std::string("compare: ") + what);
  }
}

/// Whether an operand becomes infinite by itself, whatever the size of sums.
bool has_infinite_operand(const CompareInput& input) {
  const auto is_infinite = [&](const Line& line) { return line.largest > input.model->operand_limit; };
  return std::ranges::any_of(input.row_lines, is_infinite) || std::ranges::any_of(input.column_lines, is_infinite);
}

/// As it is stored; infinite if there is none but 0.
double stored_largest(double most, const CompareInput& input) {
  const double stored = most * std::abs(input.model->output_scale);
  return stored > 0 ? std::min(stored, core::dtype_info(input.port->dtype).max_finite) : kInfinity;
}

/// The largest number that is expected, as it is stored; infinite if there is none but 0.
double largest_expected(const CompareInput& input) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  std::vector<double> found((input.expected.size() + kChunk - 1) / kChunk);
  core::parallel_chunks(input.expected.size(), kChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    found[chunk] = core::largest_finite(input.expected.subspan(begin, end - begin));
  });
  return stored_largest(found.empty() ? 0 : *std::ranges::max_element(found), input);
}

}  // namespace

bool is_undetermined_anywhere(const CompareInput& input, const Setup& setup, double largest, double largest_bound) {
  Setup known = setup;
  known.undetermined_bound = std::min(setup.undetermined_bound, 2 * stored_largest(largest, input));
  return !(largest_bound < undetermined_from(known));
}

double lambda_of(std::uint64_t elements) {
  constexpr double kFalseAlarms = 1e-6;
  return std::sqrt(2 * std::log(2 * static_cast<double>(elements == 0 ? 1 : elements) / kFalseAlarms));
}

std::uint64_t compared_elements(const CompareInput& input) {
  return input.sample != nullptr && !input.sample->all() ? input.sample->indices.size()
                                                         : static_cast<std::uint64_t>(input.port->elements());
}

void validate(const CompareInput& input) {
  check(input.port != nullptr && input.model != nullptr, "port and model are required");
  const Dtype dtype = input.port->dtype;
  check(dtype == Dtype::fp32 || dtype == Dtype::bf16 || dtype == Dtype::fp16 || dtype == Dtype::fp8_e4m3 ||
            dtype == Dtype::fp8_e5m2 || core::is_integer(dtype),
        "outputs are fp32, bf16, fp16, fp8_e4m3, fp8_e5m2, uint8 or int32");
  const std::uint64_t count = compared_elements(input);
  check(input.got.size() >= input.port->extent_bytes(), "the output buffer is shorter than the port");
  if (input.source != nullptr) {
    check(input.expected.empty() && input.magnitude.empty(), "rows come from a source, or are there");
    check(count == static_cast<std::uint64_t>(input.port->elements()), "rows from a source are compared all");
    return;
  }
  check(input.expected.size() == count, "expected values do not fit the output");
  check(input.unrounded.empty() || input.unrounded.size() == count, "unrounded values do not fit the output");
  check(
      input.magnitude.size() == input.deviation.size() && (input.magnitude.empty() || input.magnitude.size() == count),
      "yardsticks do not fit the output");
  check(input.terms.empty() || input.terms.size() == count, "magnitudes of terms do not fit the output");
  if (count != 0 && input.sample != nullptr && !input.sample->all()) {
    const auto& indices = input.sample->indices;
    check(indices.front() >= 0 && indices.back() < input.port->elements(), "the sample lies outside the output");
  }
}

Setup make_setup(const CompareInput& input) {
  const core::DtypeInfo& info = core::dtype_info(input.port->dtype);
  const model::ErrorModel& given = *input.model;
  const ForeignTolerance foreign = foreign_tolerance(info.dtype);
  const double scale = std::abs(given.output_scale);
  Setup setup;
  setup.format = format_constants(info);
  setup.output_scale = given.output_scale;
  setup.clamp = info.storage_bytes == 1 ? info.max_finite : std::numeric_limits<double>::infinity();
  setup.poison_bits = (std::uint64_t{1} << (8 * info.storage_bytes)) - 1;
  setup.overflow_magnitude = given.overflow_magnitude;
  setup.overflow_possible = given.overflow_possible;
  if (given.output_scale == 1 && std::isinf(setup.clamp)) {
    setup.sum_above = given.sum_above;
  }
  setup.nan_may_become_zero = given.nan_may_become_zero;
  setup.overflow_may_be_finite = given.overflow_may_be_finite || std::isfinite(setup.clamp);
  ModelConstants& model = setup.model;
  model.scale = scale;
  model.bound_magnitude = given.bound_magnitude;
  model.bound_value = given.bound_value;
  model.bound_absolute = given.bound_absolute * scale;
  model.var_second = given.var_second;
  model.var_magnitude = given.var_magnitude;
  model.var_value = given.var_value;
  model.var_coherent = given.var_coherent;
  model.var_absolute = given.var_absolute * scale * scale;
  model.addend = std::isfinite(given.slope_addend) ? given.slope_addend * scale : 0;
  model.coherent = given.var_coherent != 0 || given.slope_coherent != 0;
  model.narrowed = given.gelu.has_value() || given.addends.has_value();
  model.lambda_kappa = lambda_of(compared_elements(input)) * given.kappa;
  model.torch_rtol = static_cast<float>(foreign.torch_rtol);
  model.torch_atol = static_cast<float>(foreign.torch_atol);
  model.te_rtol = foreign.te_rtol;
  model.te_atol = foreign.te_atol;
  model.plan_rtol = input.rtol;
  model.plan_atol = input.atol;
  model.have_plan = input.have_allclose;
  setup.exact = given.exact;
  const bool has_terms = input.source != nullptr ? input.source->has_terms() : !input.terms.empty();
  model.terms = has_terms && !setup.format.integer;
  setup.terms = {.clipped = given.nan_may_become_zero, .stride = 1 + (compared_elements(input) - 1) / kTermElements};
  constexpr std::uint64_t kResidualElements = std::uint64_t{1} << 14;
  setup.dtype = info.dtype;
  setup.residual_stride = 1 + (compared_elements(input) - 1) / kResidualElements;
  setup.lattice = lattice_constants(input);
  constexpr double kLargest = 1e38;
  constexpr std::uint64_t kFewestForRms = 32;
  const double range = std::min(setup.format.max_finite, kLargest),
               // Of rows from a source, what that would be is known afterwards: is_undetermined_anywhere().
      swing = setup.exact || input.source != nullptr ? kInfinity : 2 * largest_expected(input);
  const std::uint64_t elements = compared_elements(input);
  setup.undetermined_bound = std::min(range, swing);
  setup.undetermined_spread = std::min(range, elements < kFewestForRms ? swing : swing * lambda_of(elements));
  setup.undetermined_magnitude = undetermined_from(setup);
  const double overflow = has_infinite_operand(input) ? 0 : setup.overflow_magnitude;
  setup.format.special_magnitude =
      std::min(setup.undetermined_magnitude, setup.overflow_may_be_finite ? overflow : kInfinity);
  if (input.port->role == op::Role::amax) {
    setup.format.special_magnitude = 0;  // its sign is checked one by one
  }
  return setup;
}

}  // namespace numcheck::metric
