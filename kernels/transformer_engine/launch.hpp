// From ports to tensors to one timed call: what the bindings share.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/transformer_engine/binding.hpp"
#include "kernels/transformer_engine/tensor.hpp"

namespace numcheck::kernels::transformer_engine {

inline constexpr std::size_t kScratchBytes = kAlignment;

/// The tensors of one launch, made of ports by name. They live as long as this.
class Operands {
 public:
  /// `scratch` holds kScratchBytes of device memory for numbers that the library writes and nobody reads, followed by
  /// whatever else the binding requested.
  Operands(Context context, std::span<const PortMemory> ports, std::byte* scratch)
      : context_(std::move(context)), ports_(ports), scratch_(scratch) {}

  [[nodiscard]] bool has(std::string_view port) const noexcept;
  [[nodiscard]] std::byte* data(std::string_view port) const;
  [[nodiscard]] const op::Port& port(std::string_view name) const;

  /// Row-wise data of the port; with its scale_inv if there is a port `<name>_scale_inv`, or with its block scales
  /// (Port::scaled_by, FP32). The product of the extents is the port's number of elements.
  Tensor& input(std::string_view name, Extents extents);
  /// Row-wise data of an output; for FP8, also scale and amax from its ports, and scale_inv in scratch.
  Tensor& output(std::string_view name, Extents extents);
  /// Adds column-wise data to a tensor of FP8 codes or of numbers: its transpose, cols x rows.
  void add_transpose(Tensor& tensor, int dtype, void* data, std::int64_t cols, std::int64_t rows);
  /// A tensor in memory that is not a port's.
  Tensor& tensor(void* memory, int dtype, Extents extents);
  /// A tensor without data: for one that is left out, or whose parts are set later.
  Tensor& none(ScalingMode mode = kPerTensor);
  /// Memory after the scratch, as much as was requested.
  [[nodiscard]] std::byte* extra() const noexcept;

  [[nodiscard]] const Context& context() const noexcept { return context_; }
  [[nodiscard]] Stream stream() const { return context_.device->stream(); }

 private:
  [[nodiscard]] const PortMemory* find(std::string_view name) const noexcept;
  Tensor& block_scaled(std::string_view name, Extents extents);

  Context context_;
  std::span<const PortMemory> ports_;
  std::byte* scratch_;
  std::byte* scale_inv_ = nullptr;  ///< of the FP8 output
  std::deque<Tensor> tensors_;
};

/// Enqueues the work; two-call functions are called with an empty workspace first.
using Enqueue = std::function<void(Handle workspace)>;
/// Makes the tensors and says how they are used.
using Prepare = std::function<Enqueue(Operands&)>;
/// Writes the memory after the scratch, once the ports have what the launch will read.
using Fill = std::function<void(const Operands&)>;

/// Why the library does not accept the ports as stored: without elements, or (layout_obstacle) padded; empty if it does.
[[nodiscard]] std::string empty_obstacle(const Call& call);
[[nodiscard]] std::string layout_obstacle(const Call& call);

/// An algorithm that is one call of a function without workspace; `extra` bytes follow the scratch.
[[nodiscard]] Algorithm single_call(const Context& context, std::string_view function, Prepare prepare,
                                    std::size_t extra = 0);

/// An algorithm that is one call of a two-call function. The library is asked here how much workspace it needs, with
/// tensors that stand in for those of the launch; throws NotSupported if it refuses. `extra` bytes follow the scratch;
/// `fill`, if there is one, is called before each launch.
[[nodiscard]] Algorithm two_calls(const Context& context, const Call& call, std::string_view function, Prepare prepare,
                                  std::size_t extra = 0, Fill fill = {});

}  // namespace numcheck::kernels::transformer_engine
