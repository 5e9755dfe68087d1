#include "kernels/harness/classify.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/harness/port_image.hpp"
#include "model/error_model.hpp"
#include "op/grouped_gemm.hpp"

namespace numcheck::kernels::harness {
namespace {

using model::PrecisionClass;

/// One way to round operands before they are multiplied.
struct Hypothesis {
  PrecisionClass precision;
  core::Dtype dtype;
  core::Rounding rounding;
  std::string_view note;
};

constexpr std::array<Hypothesis, 6> kHypotheses = {{
    {PrecisionClass::fp32, core::Dtype::fp32, core::Rounding::nearest_even, ""},
    {PrecisionClass::tf32_rne, core::Dtype::tf32, core::Rounding::nearest_even, ""},
    {PrecisionClass::tf32_rne, core::Dtype::tf32, core::Rounding::nearest_away, "ties rounded away from zero"},
    {PrecisionClass::tf32_truncated, core::Dtype::tf32, core::Rounding::toward_zero, ""},
    {PrecisionClass::bf16_inputs, core::Dtype::bf16, core::Rounding::nearest_even, ""},
    {PrecisionClass::bf16_inputs, core::Dtype::bf16, core::Rounding::toward_zero, "truncated"},
}};

constexpr int kLeastFactor = -14, kMostFactor = 15;  // exponents of normal FP16 numbers
constexpr std::size_t kRangeProbe = kProbeValues.size() - 1;

/// Classes differ by 2^-12 or more in some result, so only one is closer than half of that. What is left comes from rounding
/// alpha * x, or is an error that must not hide how operands are rounded: it is judged by what they are rounded to.
bool agrees(float got, double wanted) {
  return std::fabs(static_cast<double>(got) - wanted) < 0x1.fp-14 * std::fabs(wanted);
}

/// An error that all results share, as a factor: 2^17 is a number of every format but FP16. 1 if that is not a small error.
double shared_error(std::span<const float, kProbeValues.size()> got, float factor) {
  constexpr double kSmall = 0x1p-5;
  const double error = static_cast<double>(got[kRangeProbe]) /
                       (static_cast<double>(factor) * static_cast<double>(kProbeValues[kRangeProbe]));
  return std::fabs(error - 1) < kSmall ? error : 1;
}

/// Powers of two: what the operand that is not probed holds, and by what the probes are multiplied.
struct Factors {
  int beside = 0, of_probes = 0;
};

/// With gelu, |alpha| times both is 32 to 64: there gelu(z) = z in FP32, even where its tanh is an approximation, as agrees() is less
/// strict. FP16 holds either operand, but for the last probe.
Factors factors_of(const op::GemmParams& p) {
  constexpr int kStraight = 5;
  if (p.epilogue != "gelu") {
    return {};
  }
  const int both = kStraight - std::ilogb(p.alpha);
  const int beside = std::clamp(both, kLeastFactor, kMostFactor);
  return {beside, both - beside};
}

/// What probe i is multiplied by. The last one stays beyond FP16's range.
int exponent_of(const Factors& factors, std::size_t i) {
  return i == kRangeProbe ? std::max(factors.of_probes, 0) : factors.of_probes;
}

float power_of_two(int exponent) {
  return std::ldexp(1.0F, exponent);
}

/// The product that is probed; of groups, the first one that has outputs and products. Nothing for other ops.
std::optional<op::Product> probed_product(const Call& call) {
  std::optional<op::Product> first;
  for (const op::Port& port : call.ports) {
    if (port.role != op::Role::output) {
      continue;
    }
    std::optional<op::Product> product = op::product_behind(*call.c->op, call.c->params, port.name);
    if (product.has_value() && product->params.m != 0 && product->params.n != 0 && product->params.k != 0) {
      return product;
    }
    first = first.has_value() ? first : product;
  }
  return first;
}

class Prober {
 public:
  Prober(const Algorithm& algorithm, const Call& call, DeviceMemory& memory, std::span<const PortMemory> ports,
         std::byte* workspace, Launcher& launcher)
      : algorithm_(algorithm),
        launcher_(launcher),
        product_(probed_product(call).value()),
        params_(product_.params),
        memory_(memory),
        ports_(ports),
        workspace_(workspace) {}

  /// Starts what classifies one operand: A with probes down its rows, or B with probes along its columns. The results
  /// are there once the device has been waited for.
  void start(bool first, std::span<float, kProbeValues.size()> got) {
    const auto available = static_cast<std::size_t>(first ? params_.m : params_.n);
    const Factors factors = factors_of(params_);
    put(!first, 0, power_of_two(factors.beside));
    for (std::size_t done = 0; done < got.size();) {
      const std::size_t count = std::min(available, got.size() - done);
      for (std::size_t i = 0; i < count; ++i) {
        put(first, i, sign() * kProbeValues[done + i] * power_of_two(exponent_of(factors, done + i)));
      }
      launch(first, got.subspan(done, count));
      done += count;
    }
  }

  [[nodiscard]] Classification classify(std::span<const float, kProbeValues.size()> got) const {
    const Factors factors = factors_of(params_);
    std::array<float, kProbeValues.size()> alike{};
    for (std::size_t i = 0; i < alike.size(); ++i) {
      alike.at(i) = got[i] * power_of_two(factors.of_probes - exponent_of(factors, i));
    }
    return classify_values(alike,
                           sign() * static_cast<float>(std::ldexp(params_.alpha, factors.beside + factors.of_probes)));
  }

 private:
  /// relu and gelu pass only positive products.
  [[nodiscard]] float sign() const { return params_.alpha < 0 ? -1.0F : 1.0F; }

  /// Sets element `index` along m (n) at the first k of an operand.
  void put(bool first, std::size_t index, float value) {
    const PortMemory& operand = port_memory(ports_, first ? product_.a : product_.b);
    const auto i = static_cast<std::int64_t>(index);
    const bool down = first != (first ? params_.trans_a : params_.trans_b);
    const std::size_t offset = element_offset(*operand.port, 0, down ? i : 0, down ? 0 : i);
    memory_.upload(operand.data + offset, std::as_bytes(std::span<const float, 1>(&value, 1)));
  }

  /// Results are read down the first column, or along the first row.
  void launch(bool first, std::span<float> results) {
    const PortMemory& d = port_memory(ports_, product_.d);
    memory_.fill(d.data, 0xFF, d.port->extent_bytes());
    static_cast<void>(launcher_.start(algorithm_, fmt::format("classification {}", ++launches_), ports_, workspace_));
    std::vector<DeviceRead> reads;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      reads.push_back({std::as_writable_bytes(results.subspan(i, 1)),
                       d.data + element_offset(*d.port, 0, first ? at : 0, first ? 0 : at)});
    }
    memory_.download_at_sync(reads);
  }

  const Algorithm& algorithm_;
  Launcher& launcher_;
  int launches_ = 0;
  op::Product product_;
  const op::GemmParams& params_;
  DeviceMemory& memory_;
  std::span<const PortMemory> ports_;
  std::byte* workspace_;
};

}  // namespace

Classification classify_values(std::span<const float, kProbeValues.size()> got, float factor) {
  const double scale = static_cast<double>(factor) * shared_error(got, factor);
  const auto fits = [&](const Hypothesis& h) {
    for (std::size_t i = 0; i < kRangeProbe; ++i) {
      if (!agrees(got[i], scale * core::round_to(kProbeValues[i], h.dtype, core::Overflow::ieee, h.rounding))) {
        return false;
      }
    }
    return true;
  };
  const auto found = std::ranges::find_if(kHypotheses, fits);
  if (found == kHypotheses.end()) {
    return {.precision = PrecisionClass::unknown, .note = "no known rounding of the operands explains the bits"};
  }
  Classification result{.precision = found->precision, .note = std::string(found->note)};
  if (found->precision != PrecisionClass::fp32) {
    result.conversion = model::Conversion{found->dtype, found->rounding};
  }
  const double range = static_cast<double>(factor) * kProbeValues[kRangeProbe];
  if (std::isfinite(static_cast<float>(range)) &&
      !(std::fabs(static_cast<double>(got[kRangeProbe]) - range) <= 0.25 * std::fabs(range))) {
    // FP16 and TF32 have the same significand; only the range distinguishes them.
    result.note += std::string(result.note.empty() ? "" : ", ") + "operands have the range of FP16";
    result.conversion.reset();
  }
  return result;
}

std::string classification_obstacle(const Call& call) {
  const std::optional<op::Product> product = probed_product(call);
  if (!product.has_value()) {
    return "the probe is defined for gemm and grouped_gemm";
  }
  const op::GemmParams& p = product->params;
  const op::Mode& mode = *call.c->mode;
  if (mode.first != core::Dtype::fp32 || mode.second != core::Dtype::fp32 ||
      op::gemm_output_dtype(p, mode) != core::Dtype::fp32) {
    return "operands and output are not FP32";
  }
  if (p.m == 0 || p.n == 0 || p.k == 0) {
    return "there is no product";
  }
  const double alpha = std::fabs(p.alpha);
  if (!(alpha >= 0x1p-100 && alpha <= 0x1p100)) {
    return "alpha moves the probes out of the normal range";
  }
  const int of_probes = factors_of(p).of_probes;
  return of_probes >= kLeastFactor && of_probes <= kMostFactor
             ? ""
             : "alpha is too far from 1 for probes beyond gelu's bend";
}

void prepare_classification(DeviceMemory& memory, std::span<const PortMemory> ports) {
  for (const PortMemory& port : ports) {
    if (port.port->role == op::Role::input && port.port->extent_bytes() != 0) {
      memory.fill(port.data, 0, port.port->extent_bytes());
    }
  }
}

Classification classify_algorithm(const Algorithm& algorithm, const Call& call, DeviceMemory& memory,
                                  std::span<const PortMemory> ports, std::byte* workspace, Launcher& launcher) {
  Prober prober(algorithm, call, memory, ports, workspace, launcher);
  std::array<float, kProbeValues.size()> got_a{}, got_b{};
  const ReadScope reads(memory);
  prober.start(true, got_a);
  prober.start(false, got_b);
  launcher.finish(memory);
  Classification a = prober.classify(got_a);
  const Classification b = prober.classify(got_b);
  if (a.precision == b.precision) {
    if (a.conversion != b.conversion) {
      a.conversion.reset();
    }
    if (a.note != b.note) {
      a.note = "a: " + (a.note.empty() ? "-" : a.note) + "; b: " + (b.note.empty() ? "-" : b.note);
    }
    return a;
  }
  const auto name = [](const Classification& found) {
    return std::string(model::class_name(found.precision.value_or(PrecisionClass::unknown)));
  };
  return {.precision = PrecisionClass::unknown, .note = "a is " + name(a) + ", b is " + name(b)};
}

}  // namespace numcheck::kernels::harness
