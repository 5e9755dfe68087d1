#include "kernels/transformer_engine/tensor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

/// Destroys through the library; a destructor cannot report a failure.
template <class Object>
void destroy(const Library& library, const Function<void(Object*)>& function, Object* object) noexcept {
  try {
    library.call(function, object);
  } catch (const std::exception&) {
    return;
  }
}

BasicTensor basic_of(void* data, int dtype, Extents extents) {
  BasicTensor basic{data, dtype, {}};
  std::ranges::transform(extents, basic.shape.data.begin(), [](std::int64_t n) { return static_cast<std::size_t>(n); });
  basic.shape.ndim = extents.size();
  return basic;
}

/// Sets one part of a tensor.
void set_part(const Library& library, Handle& tensor, TensorParam param, const BasicTensor& basic) {
  // The second form exists from 2.12 on and may be the only one that later versions keep.
  if (library.has(kSetTensorParamV2.name)) {
    library.call(kSetTensorParamV2, tensor, param, &basic, sizeof basic);
  } else {
    library.call(kSetTensorParam, &tensor, param, &basic);
  }
}

}  // namespace

int data_type(core::Dtype dtype) {
  switch (dtype) {
    case core::Dtype::fp32:
    case core::Dtype::tf32:
      return kFloat32;
    case core::Dtype::bf16:
      return kBfloat16;
    case core::Dtype::fp16:
      return kFloat16;
    case core::Dtype::fp8_e4m3:
      return kFloat8E4m3;
    case core::Dtype::fp8_e5m2:
      return kFloat8E5m2;
    case core::Dtype::e8m0:
      return kFloat8E8m0;
    case core::Dtype::uint8:
      return kByte;
    case core::Dtype::int32:
      return kInt32;
    case core::Dtype::fp64:
    case core::Dtype::fp4_e2m1:
      break;
  }
  throw core::InternalError(
      fmt::format("TransformerEngine binding: no tensor type for {}", core::dtype_info(dtype).name));
}

std::size_t bytes_of(int data_type) {
  switch (data_type) {
    case kFloat32:
    case kInt32:
      return 4;
    case kInt64:
      return 8;
    case kFloat16:
    case kBfloat16:
      return 2;
    default:
      return 1;
  }
}

Tensor::Tensor(const Library& library, ScalingMode mode)
    : library_(library), handle_(library.call(kCreateTensor, mode)) {}

Tensor::Tensor(const Library& library, void* data, int dtype, Extents extents) : Tensor(library) {
  set(kRowwiseData, data, dtype, extents);
}

Tensor::~Tensor() {
  destroy(library_, kDestroyTensor, handle_);
}

void Tensor::set(TensorParam param, void* data, int dtype, Extents extents) {
  set_basic(param, basic_of(data, dtype, extents));
}

void Tensor::set_swizzled_scales() {
  if (library_.has(kSetTensorParamV2.name)) {
    const std::uint8_t yes = 1;
    library_.call(kSetTensorParamV2, handle_, kSwizzledScales, &yes, sizeof yes);
  }
}

void Tensor::set_basic(TensorParam param, const BasicTensor& basic) {
  set_part(library_, handle_, param, basic);
}

BasicTensor Workspace::requested() const {
  return {nullptr, library_.call(kTensorType, handle()), library_.call(kTensorShape, handle())};
}

std::size_t Workspace::bytes() const {
  const BasicTensor basic = requested();
  std::size_t bytes = basic.shape.ndim == 0 ? 0 : bytes_of(basic.dtype);
  for (std::size_t i = 0; i < basic.shape.ndim; ++i) {
    bytes *= basic.shape.data.at(i);
  }
  return bytes;
}

void Workspace::set_memory(std::byte* memory) {
  BasicTensor basic = requested();
  basic.data = memory;
  tensor_.set_basic(kRowwiseData, basic);
}

MatmulConfig::~MatmulConfig() {
  destroy(library_, kDestroyMatmulConfig, handle_);
}

void MatmulConfig::set(MatmulAttribute attribute, Handle tensor) {
  library_.call(kSetMatmulConfigAttribute, handle_, attribute, &tensor, sizeof tensor);
}

void MatmulConfig::set(MatmulAttribute attribute, bool value) {
  static_assert(sizeof value == 1, "the interface takes one-byte booleans");
  library_.call(kSetMatmulConfigAttribute, handle_, attribute, &value, sizeof value);
}

AttributeObject::~AttributeObject() {
  destroy(library_, functions_.destroy, handle_);
}

AuxiliaryTensors::~AuxiliaryTensors() {
  destroy(library_, kDestroyTensorPack, &pack_);
}

BasicTensor AuxiliaryTensors::requested(std::size_t index) const {
  Handle tensor = pack_.tensors.at(index);
  return {nullptr, library_.call(kTensorType, tensor), library_.call(kTensorShape, tensor)};
}

void AuxiliaryTensors::add(void* data, int dtype, Extents extents) {
  set_part(library_, pack_.tensors.at(pack_.size), kRowwiseData, basic_of(data, dtype, extents));
  ++pack_.size;
}

}  // namespace numcheck::kernels::transformer_engine
