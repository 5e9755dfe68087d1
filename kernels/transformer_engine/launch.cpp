#include "kernels/transformer_engine/launch.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/contract/ports.hpp"
#include "kernels/harness/guarded_buffer.hpp"
#include "op/output_format.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

std::vector<std::pair<std::string, std::string>> details_of(const Context& context, std::string_view function) {
  return {{"function", readable_name(function)}, {"transformer_engine", context.library.version()}};
}

}  // namespace

const PortMemory* Operands::find(std::string_view name) const noexcept {
  return find_port(ports_, name);
}

bool Operands::has(std::string_view port) const noexcept {
  return find(port) != nullptr;
}

const op::Port& Operands::port(std::string_view name) const {
  const PortMemory* found = find(name);
  if (found == nullptr) {
    throw core::InternalError(fmt::format("TransformerEngine binding: the op has no port {}", name));
  }
  return *found->port;
}

std::byte* Operands::data(std::string_view name) const {
  return port(name).offset_bytes + find(name)->data;
}

Tensor& Operands::input(std::string_view name, Extents extents) {
  if (!port(name).scaled_by.empty()) {
    return block_scaled(name, extents);
  }
  Tensor& made = tensor(data(name), data_type(port(name).dtype), extents);
  if (const std::string scale = std::string(name) + "_scale_inv"; has(scale)) {
    made.set_scalar(kRowwiseScaleInv, data(scale));
  }
  return made;
}

Tensor& Operands::block_scaled(std::string_view name, Extents extents) {
  const op::Port& codes = port(name);
  const op::Port& scales = port(codes.scaled_by);
  Tensor& made = none(codes.block_rows == 1 ? kBlock1d : kBlock2d);
  made.set(kRowwiseData, data(name), data_type(codes.dtype), extents);
  made.set(kRowwiseScaleInv, data(codes.scaled_by), kFloat32, {scales.rows, scales.ld});
  return made;
}

Tensor& Operands::output(std::string_view name, Extents extents) {
  Tensor& made = tensor(data(name), data_type(port(name).dtype), extents);
  if (!core::is_fp8(port(name).dtype)) {
    return made;
  }
  made.set_scalar(kScale, data(std::string(name) + "_scale"));
  made.set_scalar(kAmax, data(std::string(name) + "_amax"));
  scale_inv_ = scratch_;
  made.set_scalar(kRowwiseScaleInv, scale_inv_);
  return made;
}

void Operands::add_transpose(Tensor& tensor, int dtype, void* data, std::int64_t cols, std::int64_t rows) {
  tensor.set(kColumnwiseData, data, dtype, {cols, rows});
  if (scale_inv_ != nullptr) {
    tensor.set_scalar(kColumnwiseScaleInv, scale_inv_);
  }
}

std::byte* Operands::extra() const noexcept {
  return scratch_ + kScratchBytes;
}

Tensor& Operands::tensor(void* memory, int dtype, Extents extents) {
  return tensors_.emplace_back(context_.library, memory, dtype, extents);
}

Tensor& Operands::none(ScalingMode mode) {
  return tensors_.emplace_back(context_.library, mode);
}

std::string empty_obstacle(const Call& call) {
  const auto empty = std::ranges::find(call.ports, 0, &op::Port::elements);
  return empty == call.ports.end()
             ? std::string()
             : fmt::format("TransformerEngine does not accept empty tensors, and {} is empty", empty->name);
}

std::string layout_obstacle(const Call& call) {
  if (std::string obstacle = empty_obstacle(call); !obstacle.empty()) {
    return obstacle;
  }
  for (const op::Port& port : call.ports) {
    const bool is_scale = std::ranges::find(call.ports, port.name, &op::Port::scaled_by) != call.ports.end();
    if (!port.is_dense() && !is_scale) {
      return fmt::format("TransformerEngine accepts only dense tensors; {} has rows of {} elements, {} apart",
                         port.name, port.cols, port.ld);
    }
  }
  return {};
}

Algorithm single_call(const Context& context, std::string_view function, Prepare prepare, std::size_t extra) {
  return {readable_name(function), details_of(context, function), kScratchBytes + extra,
          [context, prepare = std::move(prepare)](std::span<const PortMemory> ports, std::byte* memory) {
            context.device->use();
            Operands operands(context, ports, memory);
            const Enqueue enqueue = prepare(operands);
            return context.device->timed([&enqueue] { enqueue(nullptr); });
          }};
}

Algorithm two_calls(const Context& context, const Call& call, std::string_view function, Prepare prepare,
                    std::size_t extra, Fill fill) {
  context.device->use();
  const harness::GuardedBuffer stand_in(context.device->memory(), kScratchBytes);
  std::vector<PortMemory> ports;
  for (const op::Port& port : call.ports) {
    ports.push_back({&port, stand_in.data()});
  }
  std::size_t requested = 0;
  {
    Operands operands(context, ports, stand_in.data());
    Workspace workspace(context.library);
    prepare(operands)(workspace.handle());
    requested = workspace.bytes();
  }
  const std::size_t before = kScratchBytes + aligned(extra);
  return {readable_name(function), details_of(context, function), before + requested,
          [context, before, requested, prepare = std::move(prepare), fill = std::move(fill)](
              std::span<const PortMemory> memory, std::byte* space) {
            context.device->use();
            Operands operands(context, memory, space);
            if (fill) {
              fill(operands);
            }
            const Enqueue enqueue = prepare(operands);
            Workspace workspace(context.library);
            enqueue(workspace.handle());
            if (workspace.bytes() > requested) {
              throw core::InternalError(
                  fmt::format("TransformerEngine requests {} bytes of workspace but requested {} before",
                              workspace.bytes(), requested));
            }
            workspace.set_memory(space + before);
            return context.device->timed([&] { enqueue(workspace.handle()); });
          }};
}

}  // namespace numcheck::kernels::transformer_engine
