#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "kernels/cudnn/binding.hpp"
#include "kernels/cudnn/bindings.hpp"
#include "kernels/cudnn/operands.hpp"
#include "op/softmax_bwd.hpp"
#include "op/softmax_fwd.hpp"
#include "op/softmax_mask.hpp"

namespace numcheck::kernels::cudnn {
namespace {

using op::SoftmaxMask;

/// A cudnnTensorDescriptor_t of rows x columns: each row is one softmax.
class Tensor {
 public:
  Tensor(const Library& library, DataType type, std::int64_t rows, std::int64_t columns) : library_(library) {
    library_.check(library_.tensor_create(&handle_), "cudnnCreateTensorDescriptor");
    const Status status =
        library_.tensor_set(handle_, TensorFormat::nchw, type, static_cast<int>(rows), static_cast<int>(columns), 1, 1);
    if (status != kSuccess) {
      library_.tensor_destroy(handle_);
      library_.check(status, "cudnnSetTensor4dDescriptor");
    }
  }
  ~Tensor() { library_.tensor_destroy(handle_); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  [[nodiscard]] TensorHandle get() const noexcept { return handle_; }

 private:
  const Library& library_;
  TensorHandle handle_ = nullptr;
};

/// The obstacles that the functions share; the library counts elements in an int.
template <class Params>
std::string size_obstacle(const Call& call, const Params& p) {
  if (std::string obstacle = port_obstacle(call); !obstacle.empty()) {
    return obstacle;
  }
  const double elements = static_cast<double>(p.batches * p.heads) * static_cast<double>(p.sq * p.sk);
  if (elements > std::numeric_limits<int>::max()) {
    return fmt::format("cuDNN's softmax accepts tensors of fewer than 2^31 elements; this one has {:.3g}", elements);
  }
  return {};
}

std::string forward_obstacle(const Call& call) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(call.c->params);
  if (op::softmax_mask(p.mask) != SoftmaxMask::none) {
    return "cudnnSoftmaxForward has no mask: set mask to none";
  }
  const core::Dtype format = p.scale_rounding == "ideal" ? core::Dtype::fp32 : call.c->mode->first;
  if (core::round_to(p.scale, format) != 1) {
    return "cudnnSoftmaxForward cannot scale its scores (its alpha multiplies the result): set scale to 1";
  }
  return size_obstacle(call, p);
}

std::string backward_obstacle(const Call& call) {
  const auto p = op::from_params<op::SoftmaxBwdParams>(call.c->params);
  if (op::is_causal(op::softmax_mask(p.mask))) {
    return "cudnnSoftmaxBackward has no mask and would read dy beyond a causal one: set mask to none or arbitrary";
  }
  return size_obstacle(call, p);
}

/// Checks the status of a launch: that the library does not support a case is not a failure.
void check_launch(const Library& library, Status status, std::string_view function) try {
  library.check(status, function);
} catch (const CudnnError& error) {
  if (!error.is_refusal()) {
    throw;
  }
  throw NotSupported(fmt::format("cuDNN {}, {}: {}", library.version(), function, error.reason()));
}

/// What a function takes besides its tensors in device memory.
struct Shape {
  std::int64_t rows;
  std::int64_t columns;
  DataType type;
  float alpha;
  float beta = 0;
};

using Launch = Status (*)(const Context&, const Shape&, TensorHandle, std::span<const PortMemory>);

Algorithm algorithm_of(const Context& context, std::string_view function, const Shape& shape, Launch launch) {
  return {fmt::format("{} accurate", function),
          {{"function", std::string(function)}, {"softmax", "accurate"}, {"cudnn", context.library.version()}},
          0,
          [=](std::span<const PortMemory> ports, std::byte*) {
            context.device.use();
            const Tensor tensor(context.library, shape.type, shape.rows, shape.columns);
            return context.device.timed(
                [&] { check_launch(context.library, launch(context, shape, tensor.get(), ports), function); });
          }};
}

template <class Params>
Shape shape_of(const Call& call, const Params& p, double alpha) {
  return {p.batches * p.heads * p.sq, p.sk, data_type(call.c->mode->first), static_cast<float>(alpha)};
}

std::vector<Algorithm> forward_algorithms(const Context& context, const Call& call) {
  const auto p = op::from_params<op::SoftmaxFwdParams>(call.c->params);
  return {algorithm_of(context, "cudnnSoftmaxForward", shape_of(call, p, 1),
                       [](const Context& c, const Shape& s, TensorHandle tensor, std::span<const PortMemory> ports) {
                         return c.library.softmax_forward(c.handle, SoftmaxAlgorithm::accurate, SoftmaxMode::instance,
                                                          &s.alpha, tensor, address_of(ports, "x"), &s.beta, tensor,
                                                          address_of(ports, "y"));
                       })};
}

std::vector<Algorithm> backward_algorithms(const Context& context, const Call& call) {
  const auto p = op::from_params<op::SoftmaxBwdParams>(call.c->params);
  return {algorithm_of(context, "cudnnSoftmaxBackward", shape_of(call, p, p.scale),
                       [](const Context& c, const Shape& s, TensorHandle tensor, std::span<const PortMemory> ports) {
                         return c.library.softmax_backward(c.handle, SoftmaxAlgorithm::accurate, SoftmaxMode::instance,
                                                           &s.alpha, tensor, address_of(ports, "y"), tensor,
                                                           address_of(ports, "dy"), &s.beta, tensor,
                                                           address_of(ports, "dx"));
                       })};
}

}  // namespace

const Binding& softmax_fwd() {
  static const CudnnBinding binding{{"cudnn", "softmax_fwd"}, &forward_obstacle, &forward_algorithms};
  return binding;
}

const Binding& softmax_bwd() {
  static const CudnnBinding binding{{"cudnn", "softmax_bwd"}, &backward_obstacle, &backward_algorithms};
  return binding;
}

}  // namespace numcheck::kernels::cudnn
