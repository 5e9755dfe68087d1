// An operation graph under construction: tensors of ports, scalars, intermediate tensors, and the operations on them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/cudnn/descriptor.hpp"

namespace numcheck::kernels::cudnn {

/// Tensors of a forward normalisation; null ones are left out.
struct NormForward {
  NormMode mode;
  const Descriptor* x;
  const Descriptor* scale;
  const Descriptor* bias;
  const Descriptor* epsilon;
  const Descriptor* y;
  const Descriptor* mean;
  const Descriptor* inverse_deviation;  ///< 1 / sqrt(spread + epsilon); cuDNN calls it inverse variance
};

/// Tensors of a backward normalisation; null ones are left out.
struct NormBackward {
  NormMode mode;
  const Descriptor* dy;
  const Descriptor* x;
  const Descriptor* scale;
  const Descriptor* mean;
  const Descriptor* inverse_deviation;
  const Descriptor* dx;
  const Descriptor* dscale;
  const Descriptor* dbias;
};

/// Every tensor is [rows, cols, 1, 1] with cols innermost: a matrix, a weight [1, hidden], a statistic [rows, 1]. All
/// arithmetic is FP32. Members throw CudnnError on failure. References to tensors stay valid as long as the graph.
class Graph {
 public:
  explicit Graph(const Library& library) : library_(library) {}

  /// The port's memory.
  const Descriptor& port(const op::Port& port);
  /// A number that every launch passes by value.
  const Descriptor& scalar(core::Dtype dtype, double value);
  /// A tensor that exists only within the graph: it is rounded to the format and not stored.
  const Descriptor& intermediate(core::Dtype dtype, std::int64_t rows, std::int64_t cols);

  void add(const Descriptor& a, const Descriptor& b, const Descriptor& sum);
  void norm_forward(const NormForward& n);
  void norm_backward(const NormBackward& n);

  /// Ends the construction. `handle` is null where there is no device.
  void finalize(ContextHandle handle);
  /// Precondition: finalize().
  [[nodiscard]] const Descriptor& descriptor() const { return *graph_; }
  [[nodiscard]] const Library& library() const noexcept { return library_; }

  /// The arguments of a launch on this memory. Points into the graph for numbers that are passed by value.
  [[nodiscard]] Descriptor variant_pack(std::span<const PortMemory> ports, std::byte* workspace) const;

 private:
  struct Scalar {
    std::int64_t uid;
    alignas(16) std::array<std::byte, 16> bytes;  ///< aligned as its descriptor says
  };
  struct Bound {
    std::int64_t uid;
    std::string port;
  };

  Descriptor& tensor(DataType type, std::int64_t rows, std::int64_t cols);
  Descriptor& operation(Kind kind) { return operations_.emplace_back(library_, kind); }

  const Library& library_;
  std::deque<Descriptor> tensors_;
  std::deque<Descriptor> parts_;
  std::deque<Descriptor> operations_;
  std::vector<Bound> bound_;
  std::vector<Scalar> scalars_;
  std::optional<Descriptor> graph_;
};

}  // namespace numcheck::kernels::cudnn
