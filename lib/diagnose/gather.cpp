#include "diagnose/gather.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/strings.hpp"
#include "diagnose/attention_lengths.hpp"
#include "diagnose/attention_likeness.hpp"
#include "diagnose/attention_notes.hpp"
#include "diagnose/mode_choice.hpp"
#include "diagnose/orientation.hpp"
#include "diagnose/taken_tensors.hpp"
#include "diagnose/tensor_listing.hpp"
#include "machine/memory.hpp"
#include "prepare/grouping.hpp"

namespace numcheck::diagnose {
namespace {

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
    gathered_.subject.ran = request_.ran;
    Arranged moved;
    if (reading_ != nullptr) {
      moved = arranged(*reading_, tensors_);
      tensors_ = moved.tensors;
    }
    std::ranges::move(take_tensors(gathered_.subject, tensors_, request_), std::back_inserter(gathered_.notes));
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
