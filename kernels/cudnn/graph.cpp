#include "kernels/cudnn/graph.hpp"

#include <algorithm>
#include <iterator>

#include "core/codec.hpp"
#include "kernels/cudnn/operands.hpp"

namespace numcheck::kernels::cudnn {
namespace {

/// Buffers are 256-byte aligned and these ports start where their buffers do; engines require 16 bytes.
constexpr std::int64_t kAlignmentBytes = 16;

void set_if(Descriptor& operation, Attribute attribute, const Descriptor* tensor) {
  if (tensor != nullptr) {
    operation.set(attribute, *tensor);
  }
}

}  // namespace

Descriptor& Graph::tensor(DataType type, std::int64_t rows, std::int64_t cols) {
  Descriptor& made = tensors_.emplace_back(library_, Kind::tensor);
  const std::array<std::int64_t, 4> dimensions = {rows, cols, 1, 1};
  const std::array<std::int64_t, 4> strides = {cols, 1, cols, cols};
  made.set(Attribute::tensor_uid, static_cast<std::int64_t>(tensors_.size()));
  made.set(Attribute::tensor_data_type, type);
  made.set(Attribute::tensor_alignment, kAlignmentBytes);
  made.set_all(Attribute::tensor_dimensions, std::span<const std::int64_t>(dimensions));
  made.set_all(Attribute::tensor_strides, std::span<const std::int64_t>(strides));
  return made;
}

const Descriptor& Graph::port(const op::Port& port) {
  Descriptor& made = tensor(data_type(port.dtype), port.rows, port.cols);
  made.finalize();
  bound_.push_back({static_cast<std::int64_t>(tensors_.size()), std::string(port.name)});
  return made;
}

const Descriptor& Graph::scalar(core::Dtype dtype, double value) {
  Descriptor& made = tensor(data_type(dtype), 1, 1);
  made.set(Attribute::tensor_is_by_value, true);
  made.finalize();
  Scalar& scalar = scalars_.emplace_back(Scalar{static_cast<std::int64_t>(tensors_.size()), {}});
  const auto size = static_cast<std::size_t>(core::dtype_info(dtype).storage_bytes);
  core::encode(std::span(&value, 1), dtype, std::span(scalar.bytes).first(size));
  return made;
}

const Descriptor& Graph::intermediate(core::Dtype dtype, std::int64_t rows, std::int64_t cols) {
  Descriptor& made = tensor(data_type(dtype), rows, cols);
  made.set(Attribute::tensor_is_virtual, true);
  made.finalize();
  return made;
}

void Graph::add(const Descriptor& a, const Descriptor& b, const Descriptor& sum) {
  Descriptor& how = parts_.emplace_back(library_, Kind::pointwise);
  how.set(Attribute::pointwise_mode, PointwiseMode::add);
  how.set(Attribute::pointwise_precision, DataType::fp32);
  how.finalize();
  Descriptor& made = operation(Kind::pointwise_operation);
  made.set(Attribute::pointwise_operation_descriptor, how);
  made.set(Attribute::pointwise_operation_x, a);
  made.set(Attribute::pointwise_operation_b, b);
  made.set(Attribute::pointwise_operation_y, sum);
  made.finalize();
}

void Graph::norm_forward(const NormForward& n) {
  Descriptor& made = operation(Kind::norm_forward_operation);
  made.set(Attribute::norm_forward_mode, n.mode);
  // Training: the statistics are outputs.
  made.set(Attribute::norm_forward_phase, NormPhase::training);
  set_if(made, Attribute::norm_forward_x, n.x);
  set_if(made, Attribute::norm_forward_mean, n.mean);
  set_if(made, Attribute::norm_forward_inverse_deviation, n.inverse_deviation);
  set_if(made, Attribute::norm_forward_scale, n.scale);
  set_if(made, Attribute::norm_forward_bias, n.bias);
  set_if(made, Attribute::norm_forward_epsilon, n.epsilon);
  set_if(made, Attribute::norm_forward_y, n.y);
  made.finalize();
}

void Graph::norm_backward(const NormBackward& n) {
  Descriptor& made = operation(Kind::norm_backward_operation);
  made.set(Attribute::norm_backward_mode, n.mode);
  set_if(made, Attribute::norm_backward_x, n.x);
  set_if(made, Attribute::norm_backward_mean, n.mean);
  set_if(made, Attribute::norm_backward_inverse_deviation, n.inverse_deviation);
  set_if(made, Attribute::norm_backward_dy, n.dy);
  set_if(made, Attribute::norm_backward_scale, n.scale);
  set_if(made, Attribute::norm_backward_dscale, n.dscale);
  set_if(made, Attribute::norm_backward_dbias, n.dbias);
  set_if(made, Attribute::norm_backward_dx, n.dx);
  made.finalize();
}

void Graph::finalize(ContextHandle handle) {
  Descriptor& graph = graph_.emplace(library_, Kind::operation_graph);
  if (handle != nullptr) {
    graph.set(Attribute::graph_handle, handle);
  }
  std::vector<BackendHandle> handles;
  std::ranges::transform(operations_, std::back_inserter(handles), &Descriptor::get);
  graph.set_all(Attribute::graph_operations, std::span<const BackendHandle>(handles));
  graph.finalize();
}

Descriptor Graph::variant_pack(std::span<const PortMemory> ports, std::byte* workspace) const {
  std::vector<std::int64_t> uids;
  std::vector<void*> pointers;
  for (const Bound& bound : bound_) {
    uids.push_back(bound.uid);
    pointers.push_back(address_of(ports, bound.port));
  }
  for (const Scalar& scalar : scalars_) {
    uids.push_back(scalar.uid);
    pointers.push_back(const_cast<std::byte*>(scalar.bytes.data()));  // cuDNN reads it
  }
  Descriptor pack(library_, Kind::variant_pack);
  pack.set_all(Attribute::pack_uids, std::span<const std::int64_t>(uids));
  pack.set_pointers(Attribute::pack_pointers, pointers);
  void* space = workspace;
  pack.set_pointers(Attribute::pack_workspace, std::span(&space, 1));
  pack.finalize();
  return pack;
}

}  // namespace numcheck::kernels::cudnn
