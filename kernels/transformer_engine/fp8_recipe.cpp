#include "op/fp8_recipe.hpp"

#include <cstddef>
#include <vector>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "data/delayed_scaling.hpp"
#include "kernels/cuda_support/check.hpp"
#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

constexpr std::int64_t kElements = 16;  // of a tensor that is cast only for its scale_inv
constexpr std::size_t kCastBytes = 2 * kAlignment;

/// Each module needs two tensor objects at a time, and the library has a pool of 20 MiB for those of the whole process.
constexpr std::int64_t kMostModules = 8192;

std::string_view function_of(const op::Fp8RecipeParams& p) {
  return p.reduces() ? kDelayedScalingReduced.name : kDelayedScaling.name;
}

std::string obstacle(const Context& context, const Call& call) {
  const auto p = op::from_params<op::Fp8RecipeParams>(call.c->params);
  if (std::string layout = layout_obstacle(call); !layout.empty()) {
    return layout;
  }
  if (p.modules > kMostModules) {
    return fmt::format("TransformerEngine's pool of tensor objects does not hold those of {} modules", p.modules);
  }
  return context.library.lacks({function_of(p), kQuantize.name});
}

/// The series of one case: what is enqueued for every step.
class Series {
 public:
  Series(Operands& o, const op::Fp8RecipeParams& p)
      : o_(o),
        p_(p),
        format_(data_type(data::delayed_scaling_of(p).format)),
        rows_(static_cast<std::size_t>(p.tensors) * sizeof(float)),
        cast_(o.none()),
        reduced_(o.none()),
        x_(o.tensor(o.extra(), kFloat32, {1, kElements})) {
    for (std::int64_t module = 0; module < p.modules; ++module) {
      histories_.push_back(o.tensor(history(module), kFloat32, {p.history, p.tensors}).handle());
      scales_.push_back(o.tensor(state() + module * p.tensors, kFloat32, {p.tensors}).handle());
    }
    cast_.set(kRowwiseData, o.extra() + kAlignment, format_, {1, kElements});
    cast_.set_scalar(kAmax, o.extra() + kAlignment + kElements);
  }

  void enqueue() {
    const auto modules = static_cast<std::size_t>(p_.modules), length = static_cast<std::size_t>(p_.history);
    copy(floats("new_history"), floats("history"), modules * length * rows_);
    copy(state(), floats("scale"), modules * rows_);
    for (std::int64_t step = 0; step < p_.steps; ++step) {
      use_scales(step);
      for (std::int64_t module = 0; module < p_.modules; ++module) {
        copy(history(module), floats("amaxes") + step * p_.scales() + module * p_.tensors, rows_);
      }
      update(step);
    }
    copy(floats("scales") + p_.steps * p_.scales(), state(), modules * rows_);
  }

 private:
  /// The scales of all modules, which updates change in place.
  [[nodiscard]] float* state() const { return reinterpret_cast<float*>(o_.extra() + kCastBytes); }
  [[nodiscard]] float* floats(std::string_view port) const { return reinterpret_cast<float*>(o_.data(port)); }
  [[nodiscard]] float* history(std::int64_t module) const {
    return floats("new_history") + module * p_.history * p_.tensors;
  }

  void copy(void* to, const void* from, std::size_t bytes) const {
    cuda_support::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, o_.stream()), "cudaMemcpyAsync");
  }

  /// Keeps the scales and casts a tensor with each, whose scale_inv the library writes.
  void use_scales(std::int64_t step) {
    float* scales = floats("scales") + step * p_.scales();
    float* inverses = floats("scale_invs") + step * p_.scales();
    copy(scales, state(), static_cast<std::size_t>(p_.modules) * rows_);
    for (std::int64_t i = 0; i < p_.scales(); ++i) {
      cast_.set_scalar(kScale, scales + i);
      cast_.set_scalar(kRowwiseScaleInv, inverses + i);
      o_.context().library.call(kQuantize, x_.handle(), cast_.handle(), o_.stream());
    }
  }

  /// In place, as frameworks call it.
  void update(std::int64_t step) {
    const Library& library = o_.context().library;
    const auto margin = static_cast<float>(p_.margin);
    if (p_.reduces()) {
      reduced_.set(kRowwiseData, floats("reduced") + step * p_.scales(), kFloat32, {p_.scales()});
      library.call(kDelayedScalingReduced, reduced_.handle(), histories_, scales_, p_.algorithm.c_str(), format_,
                   margin, o_.stream());
      return;
    }
    for (std::size_t i = 0; i < histories_.size(); ++i) {
      library.call(kDelayedScaling, histories_[i], scales_[i], histories_[i], scales_[i], p_.algorithm.c_str(), format_,
                   margin, o_.stream());
    }
  }

  Operands& o_;
  op::Fp8RecipeParams p_;
  int format_;
  std::size_t rows_;  ///< bytes of a row of a module's history
  Tensor& cast_;
  Tensor& reduced_;
  Tensor& x_;
  std::vector<Handle> histories_, scales_;
};

Algorithm algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::Fp8RecipeParams>(call.c->params);
  return single_call(
      context, function_of(p),
      [p](Operands& o) -> Enqueue { return [series = Series(o, p)](Handle) mutable { series.enqueue(); }; },
      kCastBytes + static_cast<std::size_t>(p.scales()) * sizeof(float));
}

}  // namespace

// nvte_delayed_scaling_recipe_amax_and_scale_update of every module, or the function with _after_reduction of all modules at
// once: the same signatures in 2.9 to 2.20. They do not compute scale_inv, which casts write: nvte_quantize of 16 elements.
const Binding& fp8_recipe() {
  static const TeBinding binding{{"transformer_engine", "fp8_recipe"}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
