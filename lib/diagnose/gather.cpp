#include "diagnose/gather.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/strings.hpp"
#include "data/inputs.hpp"
#include "diagnose/attention_lengths.hpp"
#include "diagnose/attention_likeness.hpp"
#include "diagnose/attention_notes.hpp"
#include "diagnose/likeness.hpp"
#include "diagnose/mode_choice.hpp"
#include "diagnose/orientation.hpp"
#include "diagnose/tensor_listing.hpp"
#include "machine/memory.hpp"
#include "prepare/grouping.hpp"

namespace numcheck::diagnose {
namespace {

using core::Dtype;

class Gatherer {
 public:
  Gatherer(const GatherRequest& request, const AttentionReading* reading, prepare::Catalog catalog,
           plan::OpLookup lookup)
      : request_(request), reading_(reading), lookup_(lookup) {
    gathered_.subject.catalog = catalog;
    gathered_.subject.device.sm = request.sm;
    gathered_.subject.device.simulated = true;
    gathered_.subject.device.name = fmt::format("sm_{}", request.sm);
  }

  Gathered gather() {
    leave_out_others();
    if (tensors_.empty()) {
      throw core::UsageError(fmt::format(
          "none of the tensors has the name of one of {0}'s, which te-numcheck explain {0} lists", request_.op->name));
    }
    const op::Mode& mode = find_mode();
    choose_output_format(mode);
    make_case(mode, fitted_params(mode));
    require_memory();
    Arranged moved;
    if (reading_ != nullptr) {
      moved = arranged(*reading_, tensors_);
      tensors_ = moved.tensors;
    }
    take_tensors();
    std::ranges::move(settle_orientation(gathered_.subject, request_.params), std::back_inserter(gathered_.notes));
    for (const auto& taken : settle_choices(gathered_.subject, request_.params)) {
      const std::string before = taken.first + " = ";
      std::erase_if(gathered_.notes, [&before](const std::string& said) { return said.starts_with(before); });
      gathered_.notes.push_back(taken.second);
    }
    return std::move(gathered_);
  }

 private:
  [[nodiscard]] const data::FileTensor* tensor_of(std::string_view port) const {
    const auto found = std::ranges::find(tensors_, port, &NamedTensor::port);
    return found == tensors_.end() ? nullptr : &found->tensor;
  }

  /// Files may hold more than the op's tensors.
  void leave_out_others() {
    std::vector<std::string_view> others;
    for (const NamedTensor& named : request_.tensors) {
      const auto has = [&](std::string_view mode) {
        return may_have_port(*request_.op, *op::find_mode(mode), request_.params, named.port);
      };
      const bool is_known = request_.mode.empty() ? std::ranges::any_of(request_.op->modes, has)
                                                  : op::find_mode(request_.mode) == nullptr || has(request_.mode);
      if (named.may_be_other && !is_known) {
        others.push_back(named.port);
      } else {
        tensors_.push_back(named);
      }
    }
    if (!others.empty()) {
      gathered_.notes.push_back(
          fmt::format("not tensors of {}, left out: {}", request_.op->name, fmt::join(others, ", ")));
    }
  }

  /// The formats of the given inputs, in the order in which they were named.
  [[nodiscard]] const op::Mode& find_mode() const {
    if (!request_.mode.empty()) {
      const op::Mode* mode = op::find_mode(request_.mode);
      if (mode == nullptr || std::ranges::find(request_.op->modes, request_.mode) == request_.op->modes.end()) {
        throw core::UsageError(fmt::format("{} has no mode {}; it has {}", request_.op->name, request_.mode,
                                           fmt::join(request_.op->modes, ", ")));
      }
      if (const std::string advice = raw_advice(tensors_); !advice.empty()) {
        throw core::UsageError(advice);
      }
      return *mode;
    }
    const ModeChoice choice(*request_.op, request_.params, tensors_, shapes());
    if (const op::Mode* mode = choice.find(); mode != nullptr) {
      return *mode;
    }
    refuse_mistakes(fit_params(*request_.op, choice.least_mistaken(), request_.params, shapes()));
    throw core::UsageError(
        fmt::format("no mode of {} stores its inputs as these tensors are stored{}: choose one with --mode ({})",
                    request_.op->name, choice.nearest(), fmt::join(request_.op->modes, ", ")),
        format_advice(tensors_));
  }

  [[nodiscard]] std::vector<TensorShape> shapes() const {
    std::vector<TensorShape> all;
    for (const NamedTensor& named : tensors_) {
      const auto read = reading_ == nullptr ? std::vector<TensorShape>::const_iterator()
                                            : std::ranges::find(reading_->shapes, named.port, &TensorShape::port);
      if (reading_ != nullptr && read != reading_->shapes.end()) {
        all.push_back(*read);
        continue;
      }
      all.push_back({named.port, named.tensor.shape});
    }
    return all;
  }

  void refuse_mistakes(const Fit& fit) const {
    if (!fit.mistakes.empty()) {
      throw core::UsageError(
          fmt::format("these tensors do not fit {}: {}", request_.op->name, fmt::join(fit.mistakes, "; ")));
    }
  }

  [[nodiscard]] op::Params fitted_params(const op::Mode& mode) {
    Fit fit = fit_params(*request_.op, mode, params_, shapes());
    refuse_mistakes(fit);
    gathered_.notes.insert(gathered_.notes.end(), fit.notes.begin(), fit.notes.end());
    return std::move(fit.params);
  }

  /// An op that offers formats of its output gets that of the tensor.
  void choose_output_format(const op::Mode& mode) {
    params_ = request_.params;
    const std::optional<std::size_t> field = op::field_index(*request_.op, "output");
    if (!field.has_value() || params_.contains("output")) {
      return;
    }
    const Fit fit = fit_params(*request_.op, mode, params_, shapes());
    if (!fit.mistakes.empty()) {
      return;  // said by whoever fits next
    }
    const std::vector<op::Port> ports = request_.op->ports(fit.params, mode);
    const auto is_as_stored = [this](const op::Port& port) {
      const data::FileTensor* tensor = port.role == op::Role::input ? tensor_of(port.name) : nullptr;
      return tensor != nullptr && !core::is_integer(port.dtype) && tensor->dtype == port.dtype;
    };
    if (std::ranges::none_of(ports, is_as_stored)) {
      return;  // of another mode
    }
    for (const op::Port& port : ports) {
      const data::FileTensor* tensor = port.role == op::Role::output ? tensor_of(port.name) : nullptr;
      if (tensor == nullptr) {
        continue;
      }
      if (!tensor->dtype.has_value() || *tensor->dtype == port.dtype) {
        return;
      }
      params_["output"] = std::string(core::dtype_info(*tensor->dtype).name);
      const Fit other = fit_params(*request_.op, mode, params_, shapes());
      if (!other.mistakes.empty()) {
        params_ = request_.params;
      } else {
        gathered_.notes.push_back(fmt::format("output = {}", core::dtype_info(*tensor->dtype).name));
      }
      return;
    }
  }

  /// Through the plan's own decoder, which knows the limits of every parameter.
  void make_case(const op::Mode& mode, const op::Params& params) {
    plan::Case c;
    c.op = request_.op;
    c.mode = &mode;
    c.params = params;
    c.backend = "given";
    c.inputs.common = data::make_distribution(request_.exact_leg ? "exact" : "normal");
    gathered_.subject.c = plan::case_from_json(plan::case_to_json(c), lookup_);
  }

  /// Files may hold more than fits: they are mapped, but numbers are not.
  void require_memory() const {
    const std::uint64_t needed = prepare::estimate_case_bytes(gathered_.subject.c);
    const std::uint64_t most = machine::memory_limit_bytes();
    if (needed > most) {
      throw core::EnvironmentError(fmt::format("{} of these sizes needs {} of host memory, and this process may use {}",
                                               request_.op->name, core::human_bytes(needed), core::human_bytes(most)));
    }
  }

  void take_tensors() {
    plan::Case& c = gathered_.subject.c;
    std::vector<std::string_view> absent_scales;
    for (const op::Port& port : c.op->ports(c.params, *c.mode)) {
      const data::FileTensor* found = tensor_of(port.name);
      const std::optional<data::FileTensor> codes = found == nullptr ? std::nullopt : as_codes(port, *found);
      const data::FileTensor* tensor = codes.has_value() ? &*codes : found;
      const bool is_output = port.role == op::Role::output || port.role == op::Role::amax;
      if (tensor != nullptr && is_output) {
        take_output(port, *tensor);
      } else if (tensor != nullptr) {
        take_input(port, *tensor);
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
      gathered_.notes.push_back(fmt::format("not given, and taken as 1: {}", fmt::join(absent_scales, ", ")));
    }
    if (gathered_.subject.outputs.empty()) {
      throw core::UsageError(
          fmt::format("no output of {} is among the tensors, so there is nothing to judge", c.op->name));
    }
  }

  /// A run chooses scales of outputs by their largest values; operands' are 1 unless they are given.
  void take_as_one(const op::Port& scale) {
    const plan::Case& c = gathered_.subject.c;
    if (op::port_named(c.op->ports(c.params, *c.mode), scale.of).role == op::Role::output) {
      auto one = std::make_shared<core::Buffer<double>>(1);
      (*one)[0] = 1;
      gathered_.subject.inputs.set(std::string(scale.name), std::move(one));
    }
  }

  /// The o of attention's backward pass, where its numbers and weights are rounded: D is the row sum of do o.
  [[nodiscard]] bool is_stored_by_forward(const op::Port& port) const {
    const bool is_rounded = core::dtype_info(port.dtype).storage_bytes <= 2;
    return gathered_.subject.c.op->name == "attention_bwd" && port.name == "o" && is_rounded;
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
      gathered_.notes.push_back(fmt::format("{} of {} numbers of {} are not {}: they are rounded first", rounded,
                                            values->size(), port.name, core::dtype_info(port.dtype).name));
    }
    if (!core::is_integer(port.dtype) && !request_.exact_leg) {
      gathered_.subject.c.inputs.ports[std::string(port.name)] =
          likeness(values->span(), static_cast<std::size_t>(port.cols));
    }
    const bool has_nan = std::ranges::any_of(values->span(), [](double x) { return std::isnan(x); });
    const auto is_scale = [](double x) { return x > 0 && std::isfinite(x); };
    const auto odd = std::ranges::find_if_not(values->span(), is_scale);
    if (port.role == op::Role::scale && odd != values->span().end()) {
      gathered_.notes.push_back(
          fmt::format("{} is {}, which is not a scale: those are positive and finite", port.name, *odd));
    }
    gathered_.subject.inputs.set(std::string(port.name), std::move(values));
    if (stays) {
      gathered_.notes.push_back(fmt::format("{} is in FP32: its numbers are added as they are, not rounded to {}",
                                            port.name, core::dtype_info(port.dtype).name));
      gathered_.subject.inputs.keep_unrounded(std::string(port.name));
    }
    if (has_nan && tensor.dtype == port.dtype) {
      const std::vector<std::byte> dense = data::dense_bytes(tensor);
      auto bits = std::make_shared<core::Buffer<std::byte>>(dense.size());
      std::ranges::copy(dense, bits->data());
      gathered_.subject.inputs.set_bits(std::string(port.name), std::move(bits));
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
                        gathered_.subject.c.mode->name, request_.op->name));
      }
      core::encode(values.span(), port.dtype, bytes->span());
    }
    gathered_.subject.outputs.emplace(port.name, std::move(bytes));
  }

  const GatherRequest& request_;
  const AttentionReading* reading_;  ///< how tensors of attention are read; null: as the ports have them
  plan::OpLookup lookup_;
  std::vector<NamedTensor> tensors_;  ///< those that are of the op
  ChosenParams params_;
  Gathered gathered_;
};

/// Of sequences of attention.
void check_lengths(Gathered& gathered) {
  require_lengths_that_fit(gathered.subject);
  if (std::string note = padding_note(gathered.subject); !note.empty()) {
    gathered.notes.push_back(std::move(note));
  }
}

Gathered gather_as_read(const GatherRequest& request, prepare::Catalog catalog, plan::OpLookup lookup) {
  const std::vector<AttentionReading> readings = attention_readings(*request.op, request.params, request.tensors);
  if (readings.empty()) {
    Gathered gathered = Gatherer(request, nullptr, catalog, lookup).gather();
    check_lengths(gathered);
    return gathered;
  }
  const ChosenReading chosen = choose(readings, request.tensors);
  GatherRequest read = request;
  read.params = readings[chosen.index].params;
  Gathered gathered = Gatherer(read, &readings[chosen.index], catalog, lookup).gather();
  check_lengths(gathered);
  gathered.notes.insert(gathered.notes.begin(), layout_note(readings, chosen));
  if (std::string left = left_tokens_note(readings[chosen.index]); !left.empty()) {
    gathered.notes.push_back(std::move(left));
  }
  return gathered;
}

}  // namespace

Gathered gather(const GatherRequest& request, prepare::Catalog catalog, plan::OpLookup lookup) {
  try {
    return gather_as_read(request, catalog, lookup);
  } catch (const core::UsageError& error) {
    std::vector<std::string> notes = error.notes();
    if (std::string note = others_note(request); !note.empty()) {
      notes.push_back(std::move(note));
    }
    throw core::UsageError(error.what(), std::move(notes));
  }
}

}  // namespace numcheck::diagnose
