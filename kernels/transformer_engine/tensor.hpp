// RAII for TransformerEngine's objects: tensors, configurations, workspaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>

#include "core/dtype.hpp"
#include "kernels/transformer_engine/library.hpp"

namespace numcheck::kernels::transformer_engine {

/// Alignment of every part of a workspace, in bytes.
inline constexpr std::size_t kAlignment = 256;

[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// The format's number in the interface; throws core::InternalError for a format that it does not have.
[[nodiscard]] int data_type(core::Dtype dtype);

/// Bytes of an element of that data type.
[[nodiscard]] std::size_t bytes_of(int data_type);

/// Extents of a tensor, slowest first.
using Extents = std::initializer_list<std::int64_t>;

/// An NVTETensor. Does not own its memory. Not movable: functions keep no reference, but workspaces hold handles.
class Tensor {
 public:
  /// A tensor without data; by default with one scale for the whole tensor.
  explicit Tensor(const Library& library, ScalingMode mode = kPerTensor);
  /// A tensor with row-wise data.
  Tensor(const Library& library, void* data, int dtype, Extents extents);
  ~Tensor();
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  /// Sets one of its parts: data, scale, amax, scale_inv.
  void set(TensorParam param, void* data, int dtype, Extents extents);
  /// Sets a part that is one FP32 number.
  void set_scalar(TensorParam param, void* data) { set(param, data, kFloat32, {1}); }

  /// Says that its scales are in the order of op::SwizzleScalesParams, to versions that ask.
  void set_swizzled_scales();

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

 private:
  friend class Workspace;
  void set_basic(TensorParam param, const BasicTensor& basic);

  const Library& library_;
  Handle handle_;
};

/// The workspace of a two-call function: called with an empty one, the function only sets the shape and type that it
/// needs; called again with memory, it does its work.
class Workspace {
 public:
  explicit Workspace(const Library& library) : library_(library), tensor_(library) {}

  [[nodiscard]] Handle handle() const noexcept { return tensor_.handle(); }
  /// What the first call requested.
  [[nodiscard]] std::size_t bytes() const;
  /// `memory`: bytes() bytes.
  void set_memory(std::byte* memory);

 private:
  [[nodiscard]] BasicTensor requested() const;

  const Library& library_;
  Tensor tensor_;
};

/// An NVTEMatmulConfig.
class MatmulConfig {
 public:
  explicit MatmulConfig(const Library& library) : library_(library), handle_(library.call(kCreateMatmulConfig)) {}
  ~MatmulConfig();
  MatmulConfig(const MatmulConfig&) = delete;
  MatmulConfig& operator=(const MatmulConfig&) = delete;

  void set(MatmulAttribute attribute, Handle tensor);
  void set(MatmulAttribute attribute, bool value);

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

 private:
  const Library& library_;
  Handle handle_;
};

/// Functions of one kind of objects that are described by numbered attributes.
struct ObjectFunctions {
  CreateObject create;
  DestroyObject destroy;
  SetAttribute set;
};

/// Those of NVTEQuantizationConfig.
inline constexpr ObjectFunctions kQuantizeConfig = {kCreateQuantizeConfig, kDestroyQuantizeConfig, kSetQuantizeConfig};

/// An object of such a kind: an NVTEQuantizationConfig, NVTEFusedAttnConfig, NVTEFusedAttnFwdParams or NVTEFusedAttnBwdParams.
class AttributeObject {
 public:
  AttributeObject(const Library& library, const ObjectFunctions& functions)
      : library_(library), functions_(functions), handle_(library.call(functions.create)) {}
  ~AttributeObject();
  AttributeObject(const AttributeObject&) = delete;
  AttributeObject& operator=(const AttributeObject&) = delete;

  /// The value's type must have the attribute's size.
  template <class T>
  void set(int attribute, T value) {
    library_.call(functions_.set, handle_, attribute, &value, std::as_bytes(std::span(&value, 1)).size());
  }

  [[nodiscard]] Handle handle() const noexcept { return handle_; }

 private:
  const Library& library_;
  ObjectFunctions functions_;
  Handle handle_;
};

/// An NVTETensorPack: tensors whose number and shapes the library may choose. Does not own their memory.
class AuxiliaryTensors {
 public:
  explicit AuxiliaryTensors(const Library& library) : library_(library) { library.call(kCreateTensorPack, &pack_); }
  ~AuxiliaryTensors();
  AuxiliaryTensors(const AuxiliaryTensors&) = delete;
  AuxiliaryTensors& operator=(const AuxiliaryTensors&) = delete;

  [[nodiscard]] TensorPack* pack() noexcept { return &pack_; }
  [[nodiscard]] std::size_t size() const noexcept { return pack_.size; }
  /// Type and shape that the library gave a tensor. Precondition: index < size().
  [[nodiscard]] BasicTensor requested(std::size_t index) const;
  void clear() noexcept { pack_.size = 0; }
  /// Adds a tensor in memory of the caller's.
  void add(void* data, int dtype, Extents extents);

 private:
  const Library& library_;
  TensorPack pack_;
};

}  // namespace numcheck::kernels::transformer_engine
