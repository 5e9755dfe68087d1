#include "op/fp8_recipe.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/dtype.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"

namespace numcheck::kernels::sim {
namespace {

op::Fp8RecipeParams params_of(const Call& call) {
  return op::from_params<op::Fp8RecipeParams>(call.c->params);
}

std::string needs_max(const Call& call) {
  return params_of(call).algorithm == "max" ? "" : "scales are for the most recent amax";
}

std::string needs_older(const Call& call) {
  return params_of(call).history < 2 ? "one amax is remembered" : needs_max(call);
}

std::string needs_history(const Call& call) {
  return params_of(call).history < 3 ? "fewer than three amaxes are remembered" : "";
}

std::string needs_margin(const Call& call) {
  return params_of(call).margin == 0 ? "the margin is 0" : "";
}

std::string needs_neighbour(const Call& call) {
  return params_of(call).tensors < 2 ? "a module has one tensor" : "";
}

std::string needs_second_rank(const Call& call) {
  return params_of(call).second_rank ? "" : "there is no other rank";
}

std::string needs_two_steps(const Call& call) {
  return params_of(call).steps < 2 ? "there is one step" : "";
}

constexpr std::array kFaults = {
    OpFault{{"history_rolled_back", "the history is rolled the wrong way"}, &needs_history},
    OpFault{{"current_amax_left_out", "the amax of the step that ends does not count, only those before"}, &needs_max},
    OpFault{{"oldest_amax_left_out", "the maximum is taken after the roll, without the amax that it forgets"},
            &needs_older},
    OpFault{{"slot_not_cleared", "slot 0 of the history keeps the amax of the step that ends"}},
    OpFault{{"margin_sign", "scales are 2^margin times larger, not smaller"}, &needs_margin},
    OpFault{{"most_recent_for_max", "scales are for the most recent amax, not for the largest"}, &needs_older},
    OpFault{{"scale_not_kept", "an amax of 0 or infinity sets the scale to 1"}},
    OpFault{{"nan_amax_counts", "a NaN in the history makes the scale NaN"}},
    OpFault{{"quotient_overflows", "a scale that overflows is infinite, not the largest FP32 number"}},
    OpFault{{"other_format", "scales are for the largest number of the other FP8 format"}},
    OpFault{{"neighbour_history", "the history of the next tensor is taken"}, &needs_neighbour},
    OpFault{{"idle_mistaken", "a tensor without an amax is treated as the other kernel treats it"}},
    OpFault{{"reduction_ignored", "the amax of this rank is taken, not the largest of all ranks"}, &needs_second_rank},
    OpFault{{"scale_not_delayed", "the scale of a step already counts its own amax"}},
    OpFault{{"scale_inv_stale", "scale_inv is that of the step before"}, &needs_two_steps},
};

/// One case on the device, from its first step to its last.
class Series {
 public:
  Series(const op::Fp8RecipeParams& p, std::span<const PortMemory> ports, const std::string& fault)
      : p_(p),
        fault_(fault),
        length_(static_cast<std::size_t>(p.history)),
        tensors_(static_cast<std::size_t>(p.tensors)),
        all_(static_cast<std::size_t>(p.scales())),
        amaxes_(read_floats(ports, "amaxes")),
        reduced_(p.reduces() ? read_floats(ports, "reduced") : std::vector<float>()),
        history_(read_floats(ports, "history")),
        scale_(read_floats(ports, "scale")),
        target_(target()) {}

  void run(std::span<const PortMemory> ports) {
    const auto steps = static_cast<std::size_t>(p_.steps);
    std::vector<float> scales, inverses;
    for (std::size_t step = 0; step < steps; ++step) {
      const std::vector<float> before = scale_;
      update(step);
      const std::vector<float>& used = fault_ == "scale_not_delayed" ? scale_ : before;
      scales.insert(scales.end(), used.begin(), used.end());
    }
    for (std::size_t i = 0; i < scales.size(); ++i) {  // of the steps
      const bool stale = fault_ == "scale_inv_stale" && i >= all_;
      inverses.push_back(1 / scales[stale ? i - all_ : i]);
    }
    scales.insert(scales.end(), scale_.begin(), scale_.end());
    write_floats(ports, "scales", scales, fault_);
    write_floats(ports, "scale_invs", inverses, fault_);
    write_floats(ports, "new_history", history_, fault_);
  }

 private:
  [[nodiscard]] float target() const {
    const bool is_e5m2 = (p_.format == "fp8_e5m2") != (fault_ == "other_format");
    const core::Dtype format = is_e5m2 ? core::Dtype::fp8_e5m2 : core::Dtype::fp8_e4m3;
    const auto margin = static_cast<int>(fault_ == "margin_sign" ? -p_.margin : p_.margin);
    return static_cast<float>(core::dtype_info(format).max_finite) * std::ldexp(1.0F, -margin);
  }

  float& slot(std::vector<float>& history, std::size_t scale, std::size_t number) const {
    return history[(scale / tensors_ * length_ + number) * tensors_ + scale % tensors_];
  }

  void update(std::size_t step) {
    const std::vector<float> own(amaxes_.begin() + static_cast<std::ptrdiff_t>(step * all_),
                                 amaxes_.begin() + static_cast<std::ptrdiff_t>((step + 1) * all_));
    for (std::size_t scale = 0; scale < all_; ++scale) {
      slot(history_, scale, 0) = own[scale];
    }
    std::vector<float> old = history_;
    for (std::size_t scale = 0; scale < all_; ++scale) {
      const bool reduces = !reduced_.empty() && fault_ != "reduction_ignored";
      const float common = reduces ? reduced_[step * all_ + scale] : 0;
      update_tensor(old, scale, common == 0 ? own[scale] : common);
    }
  }

  void update_tensor(std::vector<float>& old, std::size_t scale, float last) {
    const bool leaves_idle = p_.reduces() != (fault_ == "idle_mistaken");
    if (leaves_idle && last == 0) {
      scale_[scale] = scale_for(0, scale_[scale]);
      return;
    }
    scale_[scale] = scale_for(chosen(old, scale, last), scale_[scale]);
    const bool back = fault_ == "history_rolled_back";
    for (std::size_t i = 1; i < length_; ++i) {
      const std::size_t from = back ? i - 1 : i + 1;
      slot(history_, scale, i) = from == 0 || from == length_ ? last : slot(old, scale, from);
    }
    slot(history_, scale, 0) = fault_ == "slot_not_cleared" ? last : 0;
  }

  /// The amax that the scale is for.
  float chosen(std::vector<float>& old, std::size_t scale, float last) const {
    if (p_.algorithm == "most_recent" || fault_ == "most_recent_for_max") {
      return last;
    }
    const bool is_last_of_module = scale % tensors_ + 1 == tensors_;
    const std::size_t read =
        fault_ == "neighbour_history" ? (is_last_of_module ? scale + 1 - tensors_ : scale + 1) : scale;
    float most = fault_ == "current_amax_left_out" ? 0 : std::fmax(0.0F, last);
    bool has_nan = std::isnan(last);
    for (std::size_t i = fault_ == "oldest_amax_left_out" ? 2 : 1; i < length_; ++i) {
      most = std::fmax(most, slot(old, read, i));
      has_nan = has_nan || std::isnan(slot(old, read, i));
    }
    return has_nan && fault_ == "nan_amax_counts" ? std::numeric_limits<float>::quiet_NaN() : most;
  }

  [[nodiscard]] float scale_for(float amax, float previous) const {
    if (fault_ == "nan_amax_counts" && std::isnan(amax)) {
      return amax;
    }
    if (amax == 0 || !std::isfinite(amax)) {
      return fault_ == "scale_not_kept" ? 1 : std::isinf(previous) ? std::numeric_limits<float>::max() : previous;
    }
    const float quotient = target_ / amax;
    return std::isinf(quotient) && fault_ != "quotient_overflows" ? std::numeric_limits<float>::max() : quotient;
  }

  const op::Fp8RecipeParams& p_;
  const std::string& fault_;
  std::size_t length_, tensors_, all_;
  std::vector<float> amaxes_, reduced_, history_, scale_;
  float target_;
};

void run(const op::Fp8RecipeParams& p, std::span<const PortMemory> ports, const std::string& fault) {
  Series(p, ports, fault).run(ports);
}

}  // namespace

const Binding& fp8_recipe() {
  return fp32_op<op::Fp8RecipeParams, kFaults, &run>("fp8_recipe");
}

}  // namespace numcheck::kernels::sim
