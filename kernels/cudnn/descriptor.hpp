// RAII for the descriptors of cuDNN's backend interface.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/cudnn/library.hpp"

namespace numcheck::kernels::cudnn {

/// The attribute type of a C++ type; types that have none do not compile.
template <class T>
struct AttributeTypeOf;
template <>
struct AttributeTypeOf<std::int64_t> : std::integral_constant<AttributeType, AttributeType::int64> {};
template <>
struct AttributeTypeOf<double> : std::integral_constant<AttributeType, AttributeType::real> {};
template <>
struct AttributeTypeOf<ContextHandle> : std::integral_constant<AttributeType, AttributeType::handle> {};
template <>
struct AttributeTypeOf<BackendHandle> : std::integral_constant<AttributeType, AttributeType::descriptor> {};
template <>
struct AttributeTypeOf<DataType> : std::integral_constant<AttributeType, AttributeType::data_type> {};
template <>
struct AttributeTypeOf<bool> : std::integral_constant<AttributeType, AttributeType::boolean> {};
template <>
struct AttributeTypeOf<char> : std::integral_constant<AttributeType, AttributeType::character> {};
template <>
struct AttributeTypeOf<PointwiseMode> : std::integral_constant<AttributeType, AttributeType::pointwise_mode> {};
template <>
struct AttributeTypeOf<ReduceOperator> : std::integral_constant<AttributeType, AttributeType::reduction_operator> {};
template <>
struct AttributeTypeOf<HeuristicsMode> : std::integral_constant<AttributeType, AttributeType::heuristics_mode> {};
template <>
struct AttributeTypeOf<NormMode> : std::integral_constant<AttributeType, AttributeType::norm_mode> {};
template <>
struct AttributeTypeOf<NormPhase> : std::integral_constant<AttributeType, AttributeType::norm_phase> {};
template <>
struct AttributeTypeOf<RngDistribution> : std::integral_constant<AttributeType, AttributeType::rng_distribution> {};
template <>
struct AttributeTypeOf<NumericalNote> : std::integral_constant<AttributeType, AttributeType::numerical_note> {};
template <>
struct AttributeTypeOf<BehaviorNote> : std::integral_constant<AttributeType, AttributeType::behavior_note> {};
template <>
struct AttributeTypeOf<KnobType> : std::integral_constant<AttributeType, AttributeType::knob_type> {};
template <class T>
inline constexpr AttributeType kAttributeType = AttributeTypeOf<T>::value;

/// A cudnnBackendDescriptor_t. All members throw CudnnError on failure.
class Descriptor {
 public:
  Descriptor(const Library& library, Kind kind);
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();

  template <class T>
  void set(Attribute attribute, T value) {
    set_elements(attribute, kAttributeType<T>, 1, &value);
  }
  void set(Attribute attribute, const Descriptor& descriptor) { set(attribute, descriptor.get()); }
  template <class T>
  void set_all(Attribute attribute, std::span<const T> values) {
    set_elements(attribute, kAttributeType<T>, static_cast<std::int64_t>(values.size()), values.data());
  }
  /// Device memory, or host memory for tensors passed by value.
  void set_pointers(Attribute attribute, std::span<void* const> pointers);
  void finalize();

  template <class T>
  [[nodiscard]] T value(Attribute attribute) const {
    T out{};
    get_elements(attribute, kAttributeType<T>, 1, &out);
    return out;
  }
  /// At most `limit` values.
  template <class T>
  [[nodiscard]] std::vector<T> values(Attribute attribute, std::size_t limit) const {
    std::vector<T> out(limit);
    out.resize(get_elements(attribute, kAttributeType<T>, limit, out.data()));
    return out;
  }
  /// At most `limit` descriptors of a kind; cuDNN copies them into descriptors made for it.
  [[nodiscard]] std::vector<Descriptor> descriptors(Attribute attribute, Kind kind, std::size_t limit) const;

  [[nodiscard]] BackendHandle get() const noexcept { return handle_; }

 private:
  void set_elements(Attribute attribute, AttributeType type, std::int64_t count, const void* values);
  std::size_t get_elements(Attribute attribute, AttributeType type, std::size_t limit, void* values) const;

  const Library* library_;
  Kind kind_;
  BackendHandle handle_ = nullptr;
};

/// What a kind of descriptor is called in messages: "execution plan".
[[nodiscard]] std::string_view kind_name(Kind kind) noexcept;

}  // namespace numcheck::kernels::cudnn
