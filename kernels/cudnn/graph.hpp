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

/// Where the elements of a tensor are: four dimensions, the outermost first, and the elements between neighbours.
struct Layout {
  std::array<std::int64_t, 4> dimensions;
  std::array<std::int64_t, 4> strides;
};

/// Row-major without gaps.
[[nodiscard]] Layout dense_layout(const std::array<std::int64_t, 4>& dimensions) noexcept;
/// Rows and columns exchanged.
[[nodiscard]] Layout transposed(const Layout& layout) noexcept;

/// An operation on each element: y = mode(x, b), or b where t is false instead of x. Null tensors are left out; those
/// with a dimension of 1 are broadcast.
struct Pointwise {
  PointwiseMode mode;
  const Descriptor* x;
  const Descriptor* b = nullptr;
  const Descriptor* t = nullptr;
  const Descriptor* y;
  DataType precision = DataType::fp32;
  std::int64_t axis = -1;  ///< gen_index: which index
};

/// Tensors of a product c = a b of the last two dimensions; heads of b are shared if it has fewer. Null ones are left
/// out.
struct Matmul {
  const Descriptor* a;
  const Descriptor* b;
  const Descriptor* c;
  const Descriptor* rows = nullptr;     ///< how many of a are used, for each matrix of the batch
  const Descriptor* columns = nullptr;  ///< how many of b
  const Descriptor* inner = nullptr;    ///< how many terms
};

/// Independent random numbers of FP32, 1 with the probability, otherwise 0.
struct Bernoulli {
  double probability;
  const Descriptor* seed;  ///< one int64 each
  const Descriptor* offset;
  const Descriptor* y;
};

/// Tensors of forward attention as one operation; null ones are left out.
struct SdpaForward {
  const Descriptor* q;
  const Descriptor* k;
  const Descriptor* v;
  const Descriptor* o;
  const Descriptor* statistics;  ///< log-sum-exp
  const Descriptor* scale;
  const Descriptor* q_lengths;
  const Descriptor* kv_lengths;
};

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

/// Where no layout is given, a tensor is [rows, cols, 1, 1] with cols innermost: a matrix, a weight [1, hidden], a
/// statistic [rows, 1]. Arithmetic is FP32 unless an operation says otherwise. Members throw CudnnError on failure.
/// References to tensors stay valid as long as the graph.
class Graph {
 public:
  explicit Graph(const Library& library) : library_(library) {}

  /// The port's memory.
  const Descriptor& port(const op::Port& port);
  /// `starts`: element of the port that each of the first dimension's matrices begins with; null: as the strides say.
  const Descriptor& port(const op::Port& port, const Layout& layout, const Descriptor* starts = nullptr);
  /// A number that every launch passes by value.
  const Descriptor& scalar(core::Dtype dtype, double value);
  /// A tensor that exists only within the graph: it is rounded to the format and not stored.
  const Descriptor& intermediate(core::Dtype dtype, std::int64_t rows, std::int64_t cols);
  const Descriptor& intermediate(DataType type, const Layout& layout, const Descriptor* starts = nullptr);
  /// Device memory that the graph needs besides its ports. `contents` are written before every launch; none: it is for
  /// the engine to write.
  const Descriptor& auxiliary(DataType type, const Layout& layout, std::vector<std::byte> contents = {});

  void pointwise(const Pointwise& p);
  void matmul(const Matmul& m);
  /// Over every dimension that y has only one of; over groups of heads if y has fewer of them.
  void reduce(ReduceOperator how, const Descriptor& x, const Descriptor& y);
  void reshape(const Descriptor& x, const Descriptor& y);
  void bernoulli(const Bernoulli& b);
  void sdpa_forward(const SdpaForward& s);
  void add(const Descriptor& a, const Descriptor& b, const Descriptor& sum);
  void norm_forward(const NormForward& n);
  void norm_backward(const NormBackward& n);

  /// Ends the construction. `handle` is null where there is no device.
  void finalize(ContextHandle handle);
  /// Precondition: finalize().
  [[nodiscard]] const Descriptor& descriptor() const { return *graph_; }
  [[nodiscard]] const Library& library() const noexcept { return library_; }

  /// Bytes that a launch's workspace starts with; the engine's own workspace comes after them.
  [[nodiscard]] std::size_t auxiliary_bytes() const noexcept { return auxiliary_bytes_; }
  /// Writes the auxiliary tensors that have contents.
  void write_auxiliaries(DeviceMemory& memory, std::byte* workspace) const;

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
  struct Auxiliary {
    std::int64_t uid;
    std::size_t offset;
    std::vector<std::byte> contents;
  };

  Descriptor& tensor(DataType type, const Layout& layout, std::int64_t alignment = kAlignmentBytes);
  [[nodiscard]] std::int64_t last_uid() const noexcept { return static_cast<std::int64_t>(tensors_.size()); }
  Descriptor& operation(Kind kind) { return operations_.emplace_back(library_, kind); }

  static constexpr std::int64_t kAlignmentBytes = 16;

  const Library& library_;
  std::deque<Descriptor> tensors_;
  std::deque<Descriptor> parts_;
  std::deque<Descriptor> operations_;
  std::vector<Bound> bound_;
  std::vector<Scalar> scalars_;
  std::vector<Auxiliary> auxiliaries_;
  std::size_t auxiliary_bytes_ = 0;
  std::optional<Descriptor> graph_;
};

}  // namespace numcheck::kernels::cudnn
