#include "diagnose/taken_tensors.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "diagnose/likeness.hpp"
#include "diagnose/mode_choice.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;

class Taker {
 public:
  Taker(Subject& subject, std::span<const NamedTensor> tensors, const GatherRequest& request)
      : subject_(subject), tensors_(tensors), request_(request) {}

  [[nodiscard]] std::vector<std::string> take() {
    plan::Case& c = subject_.c;
    std::vector<std::string_view> absent_scales, absent_outputs;
    for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
      const data::FileTensor* found = tensor_of(port.name);
      const std::optional<data::FileTensor> codes = found == nullptr ? std::nullopt : as_codes(port, *found);
      const data::FileTensor* tensor = codes.has_value() ? &*codes : found;
      const bool is_output = port.role == op::Role::output || port.role == op::Role::amax;
      if (tensor != nullptr && is_output) {
        take_output(port, *tensor);
      } else if (tensor != nullptr) {
        take_input(port, *tensor);
      } else if (is_output) {
        take_absent(port, absent_outputs);
      } else if (port.elements() == 0) {
        subject_.inputs.set(std::string(port.name), std::make_shared<core::Buffer<double>>(0));
      } else if (is_stored_by_forward(port)) {
        throw core::UsageError(
            fmt::format("{} needs the tensor {} ({}), which the forward pass stored: right gradients follow from its "
                        "rounded numbers, and "
                        "are beyond their bounds of any other",
                        c.op->name, port.name, core::dtype_info(port.dtype).name));
      } else if (must_be_given(port)) {
        throw core::UsageError(fmt::format("{} needs the tensor {} ({}): {}", c.op->name, port.name,
                                           core::dtype_info(port.dtype).name, port.doc));
      } else if (port.role == op::Role::scale && port.fill != op::Fill::computed) {
        absent_scales.push_back(port.name);
        take_as_one(port);
      }
    }
    if (!absent_scales.empty()) {
      notes_.push_back(fmt::format("not given, and taken as 1: {}", fmt::join(absent_scales, ", ")));
    }
    if (!absent_outputs.empty()) {
      notes_.push_back(fmt::format("not given, and not judged: {}", fmt::join(absent_outputs, ", ")));
    }
    if (subject_.outputs.empty()) {
      throw core::UsageError(
          fmt::format("no output of {} is among the tensors, so there is nothing to judge", c.op->name));
    }
    return std::move(notes_);
  }

 private:
  [[nodiscard]] const data::FileTensor* tensor_of(std::string_view port) const {
    const auto found = std::ranges::find(tensors_, port, &NamedTensor::port);
    return found == tensors_.end() ? nullptr : &found->tensor;
  }

  /// That of a group without elements is not missed.
  static void take_absent(const op::Port& output, std::vector<std::string_view>& absent) {
    if (output.elements() != 0) {
      absent.push_back(output.name);
    }
  }

  /// A run chooses scales of outputs by their largest values; operands' are 1 unless they are given.
  void take_as_one(const op::Port& scale) {
    const plan::Case& c = subject_.c;
    if (op::port_named(c.op->ports(c.params, *c.mode), scale.of).role == op::Role::output) {
      auto one = std::make_shared<core::Buffer<double>>(1);
      (*one)[0] = 1;
      subject_.inputs.set(std::string(scale.name), std::move(one));
    }
  }

  /// The o of attention's backward pass, where its numbers and weights are rounded: D is the row sum of do o.
  [[nodiscard]] bool is_stored_by_forward(const op::Port& port) const {
    const bool is_rounded = core::dtype_info(port.dtype).storage_bytes <= 2;
    return subject_.c.op->name == "attention_bwd" && port.name == "o" && is_rounded;
  }

  /// Formats that safetensors does not have are saved as bytes.
  static std::optional<data::FileTensor> as_codes(const op::Port& port, const data::FileTensor& tensor) {
    const bool is_bytes = tensor.dtype == Dtype::uint8 && port.dtype != Dtype::uint8;
    return is_bytes && core::dtype_info(port.dtype).storage_bytes == 1
               ? std::optional(data::read_as(tensor, port.dtype))
               : std::nullopt;
  }

  void take_input(const op::Port& port, const data::FileTensor& tensor) {
    auto values = std::make_shared<core::Buffer<double>>(data::values_of(tensor));
    const bool stays = is_wider_addend(port, tensor);
    const std::size_t rounded = tensor.dtype == port.dtype || stays ? 0 : round_all(*values, port.dtype);
    if (rounded > 0) {
      notes_.push_back(fmt::format("{} of {} numbers of {} are not {}: they are rounded first", rounded, values->size(),
                                   port.name, core::dtype_info(port.dtype).name));
    }
    if (!core::is_integer(port.dtype) && !request_.exact_leg) {
      subject_.c.inputs.ports[std::string(port.name)] = likeness(values->span(), static_cast<std::size_t>(port.cols));
    }
    const bool has_nan = std::ranges::any_of(values->span(), [](double x) { return std::isnan(x); });
    const auto is_scale = [](double x) { return x > 0 && std::isfinite(x); };
    const auto odd = std::ranges::find_if_not(values->span(), is_scale);
    if (port.role == op::Role::scale && odd != values->span().end()) {
      notes_.push_back(fmt::format("{} is {}, which is not a scale: those are positive and finite", port.name, *odd));
    }
    subject_.inputs.set(std::string(port.name), std::move(values));
    if (stays) {
      notes_.push_back(fmt::format("{} is in FP32: its numbers are added as they are, not rounded to {}", port.name,
                                   core::dtype_info(port.dtype).name));
      subject_.inputs.keep_unrounded(std::string(port.name));
    }
    if (has_nan && tensor.dtype == port.dtype) {
      const std::vector<std::byte> dense = data::dense_bytes(tensor);
      auto bits = std::make_shared<core::Buffer<std::byte>>(dense.size());
      std::ranges::copy(dense, bits->data());
      subject_.inputs.set_bits(std::string(port.name), std::move(bits));
    }
  }

  /// How many numbers that changes.
  static std::size_t round_all(core::Buffer<double>& values, Dtype dtype) {
    constexpr std::size_t kPerTask = std::size_t{1} << 16;
    std::atomic<std::size_t> changed = 0;
    core::parallel_chunks(values.size(), kPerTask, [&](std::size_t, std::size_t begin, std::size_t end) {
      std::size_t of_task = 0;
      for (double& value : values.span().subspan(begin, end - begin)) {
        const double stored = core::round_to(value, dtype);
        of_task += stored != value && !std::isnan(value) ? 1 : 0;
        value = stored;
      }
      changed += of_task;
    });
    return changed;
  }

  void take_output(const op::Port& port, const data::FileTensor& tensor) {
    const auto element = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
    auto bytes = std::make_shared<core::Buffer<std::byte>>(tensor.elements() * element);
    if (tensor.dtype == port.dtype) {
      const std::vector<std::byte> dense = data::dense_bytes(tensor);
      std::ranges::copy(dense, bytes->data());
    } else {
      core::Buffer<double> values = data::values_of(tensor);
      if (const std::size_t rounded = round_all(values, port.dtype); rounded > 0) {
        throw core::UsageError(
            fmt::format("{} holds {} numbers, {} of {} are not {}, which mode {} of {} stores: choose the mode that "
                        "was meant with --mode",
                        port.name, tensor.format, rounded, values.size(), core::dtype_info(port.dtype).name,
                        subject_.c.mode->name, request_.op->name));
      }
      core::encode(values.span(), port.dtype, bytes->span());
    }
    subject_.outputs.emplace(port.name, std::move(bytes));
  }

  Subject& subject_;
  std::span<const NamedTensor> tensors_;
  const GatherRequest& request_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> take_tensors(Subject& subject, std::span<const NamedTensor> tensors,
                                      const GatherRequest& request) {
  return Taker(subject, tensors, request).take();
}

}  // namespace numcheck::diagnose
