#include "diagnose/mode_choice.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace numcheck::diagnose {

bool is_wider_addend(const op::Port& port, const data::FileTensor& tensor) {
  const core::DtypeInfo& format = core::dtype_info(port.dtype);
  return port.name == "bias" && tensor.dtype == core::Dtype::fp32 && !core::is_integer(port.dtype) &&
         format.storage_bytes < core::dtype_info(core::Dtype::fp32).storage_bytes;
}

ModeChoice::ModeChoice(const op::Op& op, const ChosenParams& chosen, const std::vector<NamedTensor>& tensors,
                       std::vector<TensorShape> shapes)
    : op_(op), chosen_(chosen), tensors_(tensors), shapes_(std::move(shapes)) {}

ModeChoice::Suited ModeChoice::suited(const op::Mode& mode) const {
  const Fit fit = fit_params(op_, mode, chosen_, shapes_);
  Suited found;
  for (const op::Port& port : fit.mistakes.empty() ? op_.ports(fit.params, mode) : std::vector<op::Port>()) {
    const auto given = std::ranges::find(tensors_, port.name, &NamedTensor::port);
    if (given == tensors_.end() || core::is_integer(port.dtype)) {
      continue;
    }
    const data::FileTensor& tensor = given->tensor;
    if (port.role != op::Role::input) {
      found.outputs = found.outputs && (port.role != op::Role::output || tensor.dtype == port.dtype);
      continue;
    }
    if (port.name.ends_with("mask") && tensor.kind != data::ElementKind::floating) {
      continue;  // integers or truth values, in any mode
    }
    if (is_wider_addend(port, tensor)) {
      continue;
    }
    if (tensor.dtype == port.dtype) {
      ++found.count;
    } else {
      const bool is_narrow = tensor.dtype == core::Dtype::bf16 || tensor.dtype == core::Dtype::fp16;
      found.is_wider = is_narrow && port.dtype == core::Dtype::fp32 && (found.is_wider || found.others.empty());
      found.others += fmt::format("{}{} is {}", found.others.empty() ? "" : ", ", port.name, tensor.format);
    }
  }
  return found;
}

const op::Mode* ModeChoice::find() const {
  const op::Mode *first = nullptr, *wider = nullptr;
  for (const std::string_view name : op_.modes) {
    const op::Mode* mode = op::find_mode(name);
    const Suited found = suited(*mode);
    if (found.count > 0 && found.others.empty() && found.outputs) {
      return mode;
    }
    if (found.count > 0 && found.others.empty() && first == nullptr) {
      first = mode;
    }
    if (found.count > 0 && found.is_wider && wider == nullptr) {
      wider = mode;
    }
  }
  return first != nullptr ? first : wider;
}

const op::Mode& ModeChoice::least_mistaken() const {
  const auto least = std::ranges::min_element(op_.modes, {}, [this](std::string_view name) {
    return fit_params(op_, *op::find_mode(name), chosen_, shapes_).mistakes.size();
  });
  return *op::find_mode(*least);
}

std::string ModeChoice::nearest() const {
  std::string text;
  std::size_t most = 0;
  for (const std::string_view name : op_.modes) {
    const Suited found = suited(*op::find_mode(name));
    if (found.count > most) {
      most = found.count;
      text = fmt::format(" ({} would, but {})", name, found.others);
    }
  }
  return text;
}

namespace {

std::string are(const std::vector<std::string>& ports) {
  return fmt::format("{} {}", fmt::join(ports, ", "), ports.size() == 1 ? "is" : "are");
}

}  // namespace

std::string raw_advice(const std::vector<NamedTensor>& tensors) {
  constexpr std::uint64_t kByte = 8;
  std::vector<std::string> raw, formats;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.kind == data::ElementKind::raw && !named.tensor.dtype.has_value()) {
      raw.push_back(named.port);
      formats.push_back(fmt::format("{}={}", named.port, named.tensor.element_bits > kByte ? "bf16" : "fp8_e4m3"));
    }
  }
  return raw.empty()
             ? ""
             : fmt::format("{} of raw bytes, as NumPy saves BF16 and FP8: say what they hold, such as --dtype {}",
                           are(raw), fmt::join(formats, ","));
}

std::vector<std::string> format_advice(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> doubles, sentences;
  for (const NamedTensor& named : tensors) {
    if (named.tensor.dtype == core::Dtype::fp64) {
      doubles.push_back(named.port);
    }
  }
  if (!doubles.empty()) {
    sentences.push_back(fmt::format("{} in FP64, which no mode stores: save {} as float32", are(doubles),
                                    doubles.size() == 1 ? "it" : "them"));
  }
  if (std::string advice = raw_advice(tensors); !advice.empty()) {
    sentences.push_back(std::move(advice));
  }
  return sentences;
}

}  // namespace numcheck::diagnose
