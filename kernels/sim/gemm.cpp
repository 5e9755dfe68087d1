#include "kernels/sim/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/sim/fault_table.hpp"
#include "model/expected_class.hpp"
#include "op/gemm_scaling.hpp"

namespace numcheck::kernels::sim {
namespace {

using core::Dtype;

std::byte* first_element(const PortMemory& memory, std::int64_t batch) {
  const op::Port& port = *memory.port;
  return memory.data + port.offset_bytes + batch * port.batch_stride * core::dtype_info(port.dtype).storage_bytes;
}

model::MatrixView view_of(const PortMemory& memory, std::int64_t batch) {
  const op::Port& port = *memory.port;
  return {first_element(memory, batch), port.dtype, port.rows, port.cols, port.ld, 1};
}

float read_scalar(std::span<const PortMemory> ports, std::string_view name) {
  float value = 0;
  std::memcpy(&value, first_element(port_memory(ports, name), 0), sizeof(value));
  return value;
}

/// alpha and beta in the scale type: FP16 for FP16 accumulation (CUBLAS_COMPUTE_16F), else FP32.
float scalar_of(double value, const op::Mode& mode) {
  return static_cast<float>(core::round_to(value, mode.compute == op::Compute::fp16 ? Dtype::fp16 : Dtype::fp32));
}

model::Activation activation_of(const std::string& epilogue) {
  if (epilogue == "relu") {
    return model::Activation::relu;
  }
  return epilogue == "gelu" ? model::Activation::gelu_tanh : model::Activation::none;
}

model::Epilogue make_epilogue(const SimGemm& gemm, std::span<const PortMemory> ports, std::int64_t batch) {
  const op::GemmParams& p = gemm.params;
  model::Epilogue e;
  e.scale = scalar_of(p.alpha, *gemm.mode);
  if (op::has_global_scales(p)) {
    e.scale *= read_scalar(ports, "a_global_scale") * read_scalar(ports, "b_global_scale");
  } else if (gemm.mode->scaled && !op::has_line_scales(p)) {
    e.scale *= read_scalar(ports, "a_scale_inv") * read_scalar(ports, "b_scale_inv");
  }
  if (p.beta != 0) {
    e.beta = scalar_of(p.beta, *gemm.mode);
    e.c = view_of(port_memory(ports, "c"), batch);
  }
  if (p.bias) {
    e.bias = view_of(port_memory(ports, "bias"), 0);
  }
  e.activation = activation_of(p.epilogue);
  e.output = gemm.output;
  if (core::is_fp8(gemm.output)) {
    e.d_scale = read_scalar(ports, "d_scale");
    e.overflow = core::Overflow::saturate;
  }
  return e;
}

/// Of all rows and columns; none if the operands have one scale each.
model::LineScales scales_of(const SimGemm& gemm, std::span<const PortMemory> ports) {
  if (!op::has_line_scales(gemm.params)) {
    return {};
  }
  const model::StoredScales stored = {first_element(port_memory(ports, "a_scale_inv"), 0),
                                      first_element(port_memory(ports, "b_scale_inv"), 0)};
  std::vector<std::int64_t> lines(static_cast<std::size_t>(std::max(gemm.params.m, gemm.params.n)));
  std::iota(lines.begin(), lines.end(), 0);
  const auto first = [&](std::int64_t count) { return std::span(lines).first(static_cast<std::size_t>(count)); };
  return model::load_line_scales(gemm.params, stored, first(gemm.params.m), first(gemm.params.n));
}

}  // namespace

std::string sim_gemm_obstacle(const op::Mode& mode, int sm) {
  if (mode.compute == op::Compute::emulated_bf16x9 && sm >= 100) {
    return fmt::format("the BF16x9 emulation of sm_{} is not modelled (before sm_100 the request runs as FP32)", sm);
  }
  return model::gemm_obstacle(sm, mode);
}

SimGemm make_sim_gemm(const Call& call, int sm, std::string_view tf32_override) {
  SimGemm gemm = make_sim_gemm(op::from_params<op::GemmParams>(call.c->params), *call.c->mode, sm, tf32_override);
  gemm.a_is_dense = op::port_named(call.ports, "a").is_dense();
  return gemm;
}

SimGemm make_sim_gemm(const op::GemmParams& params, const op::Mode& mode, int sm, std::string_view tf32_override) {
  SimGemm gemm;
  gemm.params = params;
  gemm.mode = &mode;
  gemm.sm = sm;
  gemm.output = op::gemm_output_dtype(gemm.params, *gemm.mode);
  gemm.expected = model::expected_class(*gemm.mode, tf32_override);
  gemm.arithmetic =
      model::gemm_arithmetic(sm, *gemm.mode, op::gemm_promotes(gemm.params, *gemm.mode), gemm.uses_tf32());
  return gemm;
}

std::string describe(const SplitK& split) {
  if (split.slices == 1) {
    return "unsplit";
  }
  const std::string text = fmt::format("split-K {}", split.slices);
  return !split.rounds() ? text
                         : text + (split.reduction == SplitK::Reduction::in_place ? " (inplace)" : " (output_type)");
}

model::Schedule schedule_of(const SimGemm& gemm, const SplitK& split) {
  model::Schedule schedule = model::gemm_schedule(gemm.sm, *gemm.mode, op::gemm_promotes(gemm.params, *gemm.mode),
                                                  gemm.uses_tf32(), split.slices);
  if (split.rounds()) {
    schedule.slice_format = gemm.output;
    schedule.adds_in_place = split.reduction == SplitK::Reduction::in_place;
  }
  return schedule;
}

model::GemmTask make_task(const SimGemm& gemm, std::span<const PortMemory> ports, std::int64_t batch,
                          const SplitK& split) {
  const op::GemmParams& p = gemm.params;
  model::GemmTask task;
  const model::MatrixView a = view_of(port_memory(ports, "a"), batch);
  const model::MatrixView b = view_of(port_memory(ports, "b"), batch);
  task.a = p.trans_a ? a.transposed() : a;
  task.b = p.trans_b ? b.transposed() : b;
  if (gemm.uses_tf32()) {
    task.conversion.dtype = Dtype::tf32;
  }
  task.schedule = schedule_of(gemm, split);
  task.scales = scales_of(gemm, ports);
  task.epilogue = make_epilogue(gemm, ports, batch);
  const PortMemory& d = port_memory(ports, "d");
  task.d = {first_element(d, batch), d.port->ld};
  return task;
}

void run_sim_gemm(const SimGemm& gemm, std::span<const PortMemory> ports, const SplitK& split,
                  const std::string& fault) {
  const auto batches = static_cast<std::size_t>(gemm.params.batch);
  std::vector<float> amax(batches, 0);
  const auto run_one = [&](std::size_t batch) {
    model::GemmTask task = make_task(gemm, ports, static_cast<std::int64_t>(batch), split);
    plant_fault(fault, gemm, task);
    task.epilogue.first_row = static_cast<std::int64_t>(batch) * gemm.params.m;
    amax[batch] = model::simulate_gemm(task);
  };
  // Enough matrices keep all threads busy by themselves, and a parallel loop inside another one runs serially.
  if (batches >= 4 * static_cast<std::size_t>(core::thread_count())) {
    core::parallel_for(batches, run_one);
  } else {
    for (std::size_t batch = 0; batch < batches; ++batch) {
      run_one(batch);
    }
  }
  if (const PortMemory* port = find_port(ports, "d_amax"); port != nullptr) {
    const float value = amax_with_fault(fault, *std::ranges::max_element(amax));
    std::memcpy(first_element(*port, 0), &value, sizeof(value));
  }
}

}  // namespace numcheck::kernels::sim
