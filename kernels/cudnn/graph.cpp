#include "kernels/cudnn/graph.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/codec.hpp"
#include "kernels/cudnn/operands.hpp"

namespace numcheck::kernels::cudnn {
namespace {

/// Buffers are 256-byte aligned and these ports start where their buffers do; engines require 16 bytes.
constexpr std::size_t kAuxiliaryAlignment = 256;

/// A matrix or a vector of the normalisations.
Layout matrix_layout(std::int64_t rows, std::int64_t cols) {
  return {{rows, cols, 1, 1}, {cols, 1, cols, cols}};
}

std::size_t element_bytes(DataType type) {
  switch (type) {
    case DataType::fp32:
    case DataType::int32:
      return 4;
    case DataType::fp16:
    case DataType::bf16:
      return 2;
    case DataType::boolean:
    case DataType::fp8_e4m3:
    case DataType::fp8_e5m2:
      return 1;
    case DataType::int64:
      return 8;
  }
  return 4;
}

void set_if(Descriptor& operation, Attribute attribute, const Descriptor* tensor) {
  if (tensor != nullptr) {
    operation.set(attribute, *tensor);
  }
}

}  // namespace

Layout dense_layout(const std::array<std::int64_t, 4>& dimensions) noexcept {
  const auto& [outer, middle, rows, columns] = dimensions;
  static_cast<void>(outer);
  return {dimensions, {middle * rows * columns, rows * columns, columns, 1}};
}

Layout transposed(const Layout& layout) noexcept {
  Layout made = layout;
  std::swap(made.dimensions[2], made.dimensions[3]);
  std::swap(made.strides[2], made.strides[3]);
  return made;
}

Descriptor& Graph::tensor(DataType type, const Layout& layout, std::int64_t alignment) {
  Descriptor& made = tensors_.emplace_back(library_, Kind::tensor);
  made.set(Attribute::tensor_uid, last_uid());
  made.set(Attribute::tensor_data_type, type);
  made.set(Attribute::tensor_alignment, alignment);
  made.set_all(Attribute::tensor_dimensions, std::span<const std::int64_t>(layout.dimensions));
  made.set_all(Attribute::tensor_strides, std::span<const std::int64_t>(layout.strides));
  return made;
}

const Descriptor& Graph::port(const op::Port& port) {
  return this->port(port, matrix_layout(port.rows, port.cols));
}

const Descriptor& Graph::port(const op::Port& port, const Layout& layout, const Descriptor* starts) {
  Descriptor& made = tensor(data_type(port.dtype), layout, std::gcd(kAlignmentBytes, port.offset_bytes));
  set_if(made, Attribute::tensor_ragged_offset, starts);
  made.finalize();
  bound_.push_back({last_uid(), std::string(port.name)});
  return made;
}

const Descriptor& Graph::scalar(core::Dtype dtype, double value) {
  Descriptor& made = tensor(data_type(dtype), matrix_layout(1, 1));
  made.set(Attribute::tensor_is_by_value, true);
  made.finalize();
  Scalar& scalar = scalars_.emplace_back(Scalar{last_uid(), {}});
  const auto size = static_cast<std::size_t>(core::dtype_info(dtype).storage_bytes);
  core::encode(std::span(&value, 1), dtype, std::span(scalar.bytes).first(size));
  return made;
}

const Descriptor& Graph::intermediate(core::Dtype dtype, std::int64_t rows, std::int64_t cols) {
  return intermediate(data_type(dtype), matrix_layout(rows, cols));
}

const Descriptor& Graph::intermediate(DataType type, const Layout& layout, const Descriptor* starts) {
  Descriptor& made = tensor(type, layout);
  set_if(made, Attribute::tensor_ragged_offset, starts);
  made.set(Attribute::tensor_is_virtual, true);
  made.finalize();
  return made;
}

const Descriptor& Graph::auxiliary(DataType type, const Layout& layout, std::vector<std::byte> contents) {
  Descriptor& made = tensor(type, layout);
  made.finalize();
  auxiliaries_.push_back({last_uid(), auxiliary_bytes_, std::move(contents)});
  std::int64_t elements = 1;
  for (const std::int64_t extent : layout.dimensions) {
    elements *= extent;
  }
  const std::size_t bytes = static_cast<std::size_t>(elements) * element_bytes(type);
  auxiliary_bytes_ += (bytes + kAuxiliaryAlignment - 1) / kAuxiliaryAlignment * kAuxiliaryAlignment;
  return made;
}

void Graph::pointwise(const Pointwise& p) {
  Descriptor& how = parts_.emplace_back(library_, Kind::pointwise);
  how.set(Attribute::pointwise_mode, p.mode);
  how.set(Attribute::pointwise_precision, p.precision);
  if (p.axis >= 0) {
    how.set(Attribute::pointwise_axis, p.axis);
  }
  how.finalize();
  const bool backward = p.mode == PointwiseMode::tanh_backward;  // x is then the argument, b the gradient
  Descriptor& made = operation(Kind::pointwise_operation);
  made.set(Attribute::pointwise_operation_descriptor, how);
  made.set(Attribute::pointwise_operation_x, *p.x);
  set_if(made, backward ? Attribute::pointwise_operation_dy : Attribute::pointwise_operation_b, p.b);
  set_if(made, Attribute::pointwise_operation_t, p.t);
  made.set(backward ? Attribute::pointwise_operation_dx : Attribute::pointwise_operation_y, *p.y);
  made.finalize();
}

void Graph::matmul(const Matmul& m) {
  Descriptor& how = parts_.emplace_back(library_, Kind::matmul);
  how.set(Attribute::matmul_precision, DataType::fp32);
  how.finalize();
  Descriptor& made = operation(Kind::matmul_operation);
  made.set(Attribute::matmul_operation_descriptor, how);
  made.set(Attribute::matmul_operation_a, *m.a);
  made.set(Attribute::matmul_operation_b, *m.b);
  made.set(Attribute::matmul_operation_c, *m.c);
  set_if(made, Attribute::matmul_operation_rows, m.rows);
  set_if(made, Attribute::matmul_operation_columns, m.columns);
  set_if(made, Attribute::matmul_operation_inner, m.inner);
  made.finalize();
}

void Graph::reduce(ReduceOperator how_to, const Descriptor& x, const Descriptor& y) {
  Descriptor& how = parts_.emplace_back(library_, Kind::reduction);
  how.set(Attribute::reduction_operator, how_to);
  how.set(Attribute::reduction_precision, DataType::fp32);
  how.finalize();
  Descriptor& made = operation(Kind::reduction_operation);
  made.set(Attribute::reduction_operation_descriptor, how);
  made.set(Attribute::reduction_operation_x, x);
  made.set(Attribute::reduction_operation_y, y);
  made.finalize();
}

void Graph::reshape(const Descriptor& x, const Descriptor& y) {
  Descriptor& made = operation(Kind::reshape_operation);
  made.set(Attribute::reshape_operation_x, x);
  made.set(Attribute::reshape_operation_y, y);
  made.finalize();
}

void Graph::bernoulli(const Bernoulli& b) {
  Descriptor& how = parts_.emplace_back(library_, Kind::rng);
  how.set(Attribute::rng_distribution, RngDistribution::bernoulli);
  how.set(Attribute::rng_probability, b.probability);
  how.finalize();
  Descriptor& made = operation(Kind::rng_operation);
  made.set(Attribute::rng_operation_descriptor, how);
  made.set(Attribute::rng_operation_seed, *b.seed);
  made.set(Attribute::rng_operation_offset, *b.offset);
  made.set(Attribute::rng_operation_y, *b.y);
  made.finalize();
}

void Graph::sdpa_forward(const SdpaForward& s) {
  Descriptor& made = operation(Kind::sdpa_forward_operation);
  set_if(made, Attribute::sdpa_forward_q, s.q);
  set_if(made, Attribute::sdpa_forward_k, s.k);
  set_if(made, Attribute::sdpa_forward_v, s.v);
  set_if(made, Attribute::sdpa_forward_o, s.o);
  set_if(made, Attribute::sdpa_forward_statistics, s.statistics);
  set_if(made, Attribute::sdpa_forward_scale, s.scale);
  set_if(made, Attribute::sdpa_forward_q_lengths, s.q_lengths);
  set_if(made, Attribute::sdpa_forward_kv_lengths, s.kv_lengths);
  made.finalize();
}

void Graph::add(const Descriptor& a, const Descriptor& b, const Descriptor& sum) {
  pointwise({.mode = PointwiseMode::add, .x = &a, .b = &b, .y = &sum});
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

void Graph::write_auxiliaries(DeviceMemory& memory, std::byte* workspace) const {
  for (const Auxiliary& auxiliary : auxiliaries_) {
    if (!auxiliary.contents.empty()) {
      memory.upload(workspace + auxiliary.offset, auxiliary.contents);
    }
  }
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
  for (const Auxiliary& auxiliary : auxiliaries_) {
    uids.push_back(auxiliary.uid);
    pointers.push_back(workspace + auxiliary.offset);
  }
  Descriptor pack(library_, Kind::variant_pack);
  pack.set_all(Attribute::pack_uids, std::span<const std::int64_t>(uids));
  pack.set_pointers(Attribute::pack_pointers, pointers);
  void* space = workspace + auxiliary_bytes_;
  pack.set_pointers(Attribute::pack_workspace, std::span(&space, 1));
  pack.finalize();
  return pack;
}

}  // namespace numcheck::kernels::cudnn
