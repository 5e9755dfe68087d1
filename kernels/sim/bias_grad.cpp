#include "op/bias_grad.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "core/parallel.hpp"
#include "kernels/sim/activation_faults.hpp"
#include "kernels/sim/activation_math.hpp"
#include "kernels/sim/activation_output.hpp"
#include "kernels/sim/bindings.hpp"
#include "op/output_format.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::size_t kChunk = 4096;
constexpr std::size_t kRowsPerTile = 128;

op::BiasGradParams params_of(const Call& call) {
  return op::from_params<op::BiasGradParams>(call.c->params);
}

std::string needs_activation(const Call& call) {
  return params_of(call).fused == "none" ? "without an activation the sum is over dy" : "";
}

/// Why dx is as computed in the format that it is rounded to before its blocks are scaled.
std::string needs_first_rounding_of_dx(const Call& call) {
  const op::BiasGradParams p = params_of(call);
  if (std::string reason = needs_first_rounding(call); !reason.empty()) {
    return reason;
  }
  return p.cast || p.fused == "relu" ? "dx is dy or 0, which is not rounded before its blocks are scaled" : "";
}

std::string needs_rounded_dx(const Call& call) {
  const op::BiasGradParams p = params_of(call);
  if (!p.has_dx()) {
    return "a sum without activation or cast has no dx";
  }
  if (op::is_mxfp8(p.output)) {
    return needs_first_rounding_of_dx(call);
  }
  const core::Dtype format = op::output_dtype(p.output, *call.c->mode);
  const bool is_dy = p.fused == "relu" && format == call.c->mode->first;
  return format == core::Dtype::fp32 || is_dy ? "dx is not rounded" : "";
}

std::string needs_rows(const Call& call) {
  return params_of(call).rows == 0 ? "there are no rows" : "";
}

std::string needs_two_rows(const Call& call) {
  return params_of(call).rows < 2 ? "a sum of one term has no partial sums" : "";
}

std::string needs_transpose(const Call& call) {
  const op::BiasGradParams p = params_of(call);
  if (!p.has_transpose()) {
    return "there is no dx_t";
  }
  return p.rows < 2 || p.hidden < 2 ? "a row and its transpose are stored alike" : "";
}

constexpr std::array kFaults = {
    OpFault{{"untransposed_copy", "dx_t holds the codes of dx in their own order"}, &needs_transpose},
    OpFault{{"transpose_lanes_swapped", "dx_t has neighbouring rows of dx exchanged"}, &needs_transpose},
    OpFault{{"last_row_missing", "the sum leaves out the last row"}, &needs_rows},
    OpFault{{"bf16_sum", "partial sums are rounded to BF16"}, &needs_two_rows},
    OpFault{{"sum_of_dy", "the sum is over dy instead of dx"}, &needs_activation},
    OpFault{{"sum_of_rounded", "the sum is over dx after it has been rounded to its format"}, &needs_rounded_dx},
    kGeluConstant,
    kFactor2Missing,
    kBf16Intermediate,
    kDerivativeSign,
    kBlockScaleFloor,
    kBlockScaleOff,
    kNeighbourScale,
    OpFault{kFirstRoundingMissing.info, &needs_first_rounding_of_dx},
    kColumnwiseFromRowwise,
};

float to_bf16(float value) {
  return static_cast<float>(core::round_to(static_cast<double>(value), core::Dtype::bf16));
}

/// Sums of the columns: tiles of rows in order, then the tiles pairwise.
class ColumnSums {
 public:
  ColumnSums(std::span<const float> terms, std::size_t hidden, std::string_view fault)
      : terms_(terms),
        hidden_(hidden),
        rows_(terms.size() / hidden - (fault == "last_row_missing" ? 1 : 0)),
        coarse_(fault == "bf16_sum") {}

  [[nodiscard]] std::vector<float> run() const {
    const std::size_t tiles = std::max<std::size_t>(1, (rows_ + kRowsPerTile - 1) / kRowsPerTile);
    std::vector<float> partial(tiles * hidden_);
    core::parallel_for(tiles, [&](std::size_t tile) {
      const std::size_t end = std::min(rows_, (tile + 1) * kRowsPerTile);
      for (std::size_t i = tile * kRowsPerTile; i < end; ++i) {
        add(partial.data() + tile * hidden_, terms_.data() + i * hidden_);
      }
    });
    for (std::size_t distance = 1; distance < tiles; distance *= 2) {
      for (std::size_t tile = 0; tile + distance < tiles; tile += 2 * distance) {
        add(partial.data() + tile * hidden_, partial.data() + (tile + distance) * hidden_);
      }
    }
    partial.resize(hidden_);
    return partial;
  }

 private:
  void add(float* sums, const float* terms) const {
    for (std::size_t j = 0; j < hidden_; ++j) {
      const float sum = sums[j] + terms[j];
      sums[j] = coarse_ ? to_bf16(sum) : sum;
    }
  }

  std::span<const float> terms_;
  std::size_t hidden_;
  std::size_t rows_;
  bool coarse_;
};

/// dx as stored, divided by its scale; of an MXFP8 dx, as rounded before its blocks are scaled.
std::vector<float> stored_dx(std::span<const PortMemory> ports, std::vector<float> dx) {
  if (has_mxfp8(ports, op::kMxfp8Dx)) {
    const core::Dtype format = port_memory(ports, "dy").port->dtype;
    std::ranges::for_each(
        dx, [format](float& value) { value = static_cast<float>(core::round_to(static_cast<double>(value), format)); });
    return dx;
  }
  dx = read_floats(ports, "dx");
  if (find_port(ports, "dx_scale") != nullptr) {
    const float scale = read_floats(ports, "dx_scale").front();
    std::ranges::for_each(dx, [scale](float& value) { value /= scale; });
  }
  return dx;
}

/// dx_t from the codes of dx. Of a tile of 32 x 32, `transpose_lanes_swapped` exchanges neighbouring rows.
void write_transpose(std::span<const PortMemory> ports, std::size_t rows, std::size_t hidden, std::string_view fault) {
  const std::byte* dx = first_element(&port_memory(ports, "dx"));
  std::byte* dx_t = first_element(&port_memory(ports, "dx_t"));
  if (fault == "untransposed_copy") {
    std::copy_n(dx, rows * hidden, dx_t);
    return;
  }
  const bool swaps = fault == "transpose_lanes_swapped";
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t to = swaps && (i ^ 1) < rows ? i ^ 1 : i;
    for (std::size_t j = 0; j < hidden; ++j) {
      dx_t[j * rows + to] = dx[i * hidden + j];
    }
  }
}

void run(const op::BiasGradParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  const std::vector<float> dy = read_floats(ports, "dy");
  std::vector<float> terms = dy;
  if (p.fused != "none") {
    const ActivationMath math{.function = op::activation_kind(p.fused).function, .fault = math_fault(fault)};
    const std::vector<float> x = read_floats(ports, "x");
    core::parallel_chunks(dy.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        terms[i] = math.derivative(x[i]) * dy[i];
      }
    });
  }
  if (p.has_dx()) {
    write_activation(ports, "dx", op::kMxfp8Dx, terms, fault, "dy");
  }
  if (p.has_transpose()) {
    write_transpose(ports, static_cast<std::size_t>(p.rows), static_cast<std::size_t>(p.hidden), fault);
  }
  if (fault == "sum_of_dy") {
    terms = dy;
  } else if (fault == "sum_of_rounded") {
    terms = stored_dx(ports, std::move(terms));
  }
  write_floats(ports, "dbias", ColumnSums(terms, static_cast<std::size_t>(p.hidden), fault).run(), fault);
}

}  // namespace

const Binding& bias_grad() {
  static const std::vector<FaultInfo> faults = with_store_faults(kFaults);
  static const SimBinding binding{
      {"sim", "bias_grad"},
      [](const Call&, const SimContext&) { return std::string(); },
      [](const Call& call, const SimContext&) {
        return std::vector<Algorithm>{host_algorithm(
            call, "FP32, columns summed by tiles of 128 rows and a tree",
            [p = params_of(call), fault = call.inject](std::span<const PortMemory> ports) { run(p, ports, fault); })};
      },
      [] { return std::span<const FaultInfo>(faults); },
      [](const Call& call, const SimContext&) { return obstacle_of(kFaults, call); }};
  return binding;
}

}  // namespace numcheck::kernels::sim
