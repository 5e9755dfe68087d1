// Generates, rounds and stores the inputs of a group, case by case, keeping what cases share.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <utility>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"
#include "data/inputs.hpp"
#include "data/nan_payloads.hpp"
#include "data/scaling.hpp"
#include "prepare/group_builder.hpp"
#include "prepare/sampling.hpp"

namespace numcheck::prepare {
namespace {

constexpr std::size_t kReferenceSample = 65'536;   // outputs referenced when a full reference is too large
constexpr double kTotalErrorFlops = 4e9;           // above it the total error is taken on a sample
constexpr std::size_t kTotalErrorSample = 16'384;  // outputs of that sample
constexpr std::size_t kScaleSample = 256;          // outputs looked at to choose an output's quantising scale
constexpr double kScaleHeadroom = 1.25;            // a sample's largest output is not the largest of all

/// The largest magnitude of numbers that are stored in a format, if none overflows there; not finite if one may.
double largest_rounded(double largest, core::Dtype format) {
  const bool is_ieee = core::dtype_info(format).storage_bytes > 1;  // others saturate, infinities included
  return is_ieee ? core::round_to(largest, format) : std::numeric_limits<double>::infinity();
}

/// Which formats the inputs have: cases with the same key share one rounding.
std::string rounding_key_of(const std::vector<op::Port>& ports) {
  std::string key;
  for (const op::Port& port : ports) {
    if (port.role == op::Role::input) {
      key += format_key(port) + ";";
    }
  }
  return key;
}

bool has_several_outputs(const std::vector<op::Port>& ports) {
  return std::ranges::count(ports, op::Role::output, &op::Port::role) > 1;
}

/// The position of an input among those that the same outputs are computed from.
std::size_t number_of(const std::vector<op::Port>& ports, std::size_t input) {
  return static_cast<std::size_t>(std::count_if(
      ports.begin(), ports.begin() + static_cast<std::ptrdiff_t>(input),
      [&](const op::Port& other) { return other.role == op::Role::input && other.of == ports[input].of; }));
}

op::Operand operand_of(const op::Port& port, const double* data, double scale) {
  return {port.name, data, port.batch, port.rows, port.cols, scale, port.dtype};
}

}  // namespace

PreparedCase GroupBuilder::prepare(const plan::Case& c) {
  PreparedCase prepared(c);
  std::vector<Stored> stored(prepared.ports.size());
  prepared.rounding = rounding_of(c, prepared, stored);
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    const op::Port& port = prepared.ports[i];
    std::shared_ptr<worker::SharedBlock> block = stored[i].block;
    if (block == nullptr) {
      block = allocate_(port.extent_bytes(), worker::use_of(port));
      if (port.role == op::Role::scale) {
        const float factor = scale_port_value(c, prepared, port);
        std::memcpy(block->bytes().data(), &factor, sizeof factor);
      }
    }
    prepared.host.push_back({.port = &prepared.ports[i], .bytes = block->bytes().first(port.extent_bytes())});
    prepared.blocks.push_back(std::move(block));
  }
  return prepared;
}

std::shared_ptr<Rounding> GroupBuilder::rounding_of(const plan::Case& c, PreparedCase& prepared,
                                                    std::vector<Stored>& stored) {
  const std::string key = rounding_key_of(prepared.ports);
  std::shared_ptr<Rounding>& rounding = group_.roundings[key];
  const bool is_new = rounding == nullptr;
  if (is_new) {
    rounding = std::make_shared<Rounding>();
    group_.in_order.push_back(rounding);
    rounding->values = rounding->promise.get_future().share();
    prepared.begins_rounding = true;
  }
  for (const bool generated : {true, false}) {
    for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
      const op::Port& port = prepared.ports[i];
      if (port.role != op::Role::input) {
        continue;
      }
      if (is_generated(port) == generated) {
        const std::size_t number = number_of(prepared.ports, i);
        stored[i] = generated ? store_generated(c, prepared.ports, port, number)
                              : store_derived(c, prepared.ports, *rounding, port, number, key);
        prepared.scale[std::string(port.name)] = stored[i].scale;
        if (is_new) {
          add_operand(*rounding, port, stored[i], group_.streams && has_rows_to_pack(prepared.ports, port));
        }
      }
    }
  }
  return rounding;
}

void GroupBuilder::add_operand(Rounding& rounding, const op::Port& port, const Stored& stored, bool packs) {
  const auto known = values_.find(port.name);
  SharedDoubles values = known == values_.end() ? nullptr : known->second;  // drawn in blocks
  const std::span<const std::byte> bytes = stored.block->bytes().first(port.extent_bytes());
  double& largest = rounding.largest_code[std::string(port.name)];
  largest = values == nullptr ? in_blocks_.find(port.name)->second.largest : data::absolute_max(values->span());
  // Derived values are no FP32 numbers before they are stored.
  if ((port.dtype != core::Dtype::fp32 || !is_generated(port)) && !given_.is_unrounded(port)) {
    rounding.identity = false;
    largest = values == nullptr ? largest_rounded(largest, port.dtype) : std::numeric_limits<double>::infinity();
    if (!std::isfinite(largest)) {
      const core::Span span("load", port.name);
      auto loaded = std::make_shared<const core::Buffer<double>>(data::load_port(port, bytes));
      largest = data::absolute_max(loaded->span());
      rounding.smallest_code[std::string(port.name)] = data::absolute_min(loaded->span());
      values = values == nullptr ? nullptr : std::move(loaded);
    }
  }
  rounding.operands.push_back(
      operand_of(port, values == nullptr ? nullptr : values->data(), static_cast<double>(stored.scale_inv)));
  rounding.packed.push_back(packs ? PackedOperand{port, bytes, stored.block} : PackedOperand());
  rounding.owners.push_back(std::move(values));
}

double GroupBuilder::largest_output(const PreparedCase& prepared, const op::Port& output,
                                    const std::string& rounding_key) {
  const auto key_of = [&rounding_key](std::string_view port) { return std::string(port) + "|" + rounding_key; };
  if (const auto known = largest_.find(key_of(output.name)); known != largest_.end()) {
    return known->second;
  }
  const core::Span span("choose scale", output.name);
  for (const auto& [port, largest] : largest_outputs(prepared, output)) {
    largest_.emplace(key_of(port), largest);
  }
  const auto found = largest_.find(key_of(output.name));
  if (found == largest_.end()) {
    throw core::InternalError("the reference gives no output " + std::string(output.name));
  }
  return found->second;
}

std::map<std::string, double> GroupBuilder::largest_outputs(const PreparedCase& prepared,
                                                            const op::Port& output) const {
  const op::Reference& reference = group_.row->reference;
  const Rounding& rounding = *prepared.rounding;
  std::map<std::string, double> largest;
  // Of products, the amax would not show in the codes if it were stored as the format's largest number.
  const bool has_room = !reference.tracked() || prepared.c->op->multiplies_matrices;
  // A tracked reference gives all outputs at once, a sample is that of the given one.
  const auto add = [&](const op::Values& values) {
    for (const op::OutputValues& each : values.outputs) {
      if (reference.tracked() || each.port == output.name) {
        double& most = largest[std::string(each.port)];
        most = std::max(most, (has_room ? kScaleHeadroom : 1) * data::absolute_max(each.value.span()));
      }
    }
  };
  if (!group_.streams) {
    op::ReferenceRequest request{&group_.params, rounding.operands, {}, true};
    if (!reference.tracked() && !has_several_outputs(prepared.ports)) {
      request.sample = choose_sample(output, kScaleSample);
    }
    add(reference.values(request));
    return largest;
  }
  const op::Port& main = *main_output(prepared.ports);
  const RowOperands operands(rounding.operands, rounding.packed, main.batch * main.rows);
  std::mutex mutex;
  for_each_rows(main, [&](std::int64_t first, std::int64_t count) {
    const op::Params params = reference.on_rows(group_.params, count).value();
    RowOperands::Copies copies;
    const op::Values values = reference.values({&params, operands.of(first, count, copies), {}, true, true});
    const std::scoped_lock lock(mutex);
    add(values);
  });
  return largest;
}

float GroupBuilder::scale_port_value(const plan::Case& c, PreparedCase& prepared, const op::Port& port) {
  const auto keep = [&prepared, &port](float scale) {
    prepared.scale.try_emplace(std::string(port.of), scale);
    for (const op::Port& other : prepared.ports) {
      if (other.role == op::Role::output && other.of == port.of) {  // the same codes
        prepared.scale.try_emplace(std::string(other.name), scale);
      }
    }
  };
  if (const std::optional<float> given = given_.number(port); given.has_value()) {
    keep(*given);
    return *given;
  }
  const auto operand = prepared.scale.find(port.of);
  if (operand != prepared.scale.end()) {
    return data::scale_inverse(operand->second);
  }
  const op::Port& output = op::port_named(prepared.ports, port.of);
  float scale = 1;
  if (!c.inputs.exact_leg() && output.elements() > 0) {
    scale = data::scale_from_amax(largest_output(prepared, output, rounding_key_of(prepared.ports)), output.dtype);
  }
  keep(scale);
  return scale;
}

namespace {

op::Params without_storage(const plan::Case& c) {
  op::Params params = c.params;
  const std::vector<op::Field>& fields = c.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].storage_only && shares_storage(c)) {
      params[i] = fields[i].fallback;
    }
  }
  return params;
}

}  // namespace

PreparedGroup prepare_group(const std::vector<plan::Case>& cases, const GroupPlan& plan, Catalog catalog,
                            double flops_limit, const Allocate& allocate, References references,
                            const GivenInputs& given) {
  const Stopwatch watch;
  const plan::Case& first = cases[plan.cases.front()];
  auto group = std::make_shared<Group>();
  group->row = find_row(catalog, first.op->name);
  if (group->row == nullptr) {
    throw core::InternalError("op " + std::string(first.op->name) + " is not in the catalog");
  }
  group->params = without_storage(first);
  group->yardsticks = group->yardstick_promise.get_future().share();
  group->total = group->total_promise.get_future().share();
  const std::vector<op::Port> ports = first.op->ports(first.params, *first.mode);
  // Tracked references cost a few operations per element: they are never sampled. Nor are several outputs, of which a sample
  // would have to say which.
  const op::Port* output = group->row->reference.tracked() || has_several_outputs(ports) ? nullptr : main_output(ports);
  if (output != nullptr && first.op->flops(first.params) > flops_limit) {
    group->sample = choose_sample(*output, kReferenceSample);
  }
  group->streams = references == References::of_rows_if_possible && may_stream(cases, plan, *group->row);
  GroupBuilder builder(*group, allocate, given);
  std::vector<PreparedCase> prepared;
  for (const std::size_t index : plan.cases) {
    const Stopwatch own;
    prepared.push_back(builder.prepare(cases[index]));
    prepared.back().inputs_s = own.seconds();
  }
  prepared.front().begins_group = true;
  // What is sampled must not depend on which other cases of the group run: a resumed run or a shard gives the same
  // record.
  group->total_sample = group->sample;
  if (output != nullptr && first.op->flops(first.params) > kTotalErrorFlops &&
      static_cast<std::size_t>(output->elements()) > kTotalErrorSample) {
    group->total_sample = choose_sample(*output, kTotalErrorSample);
  }
  if (!group->row->reference.tracked()) {
    choose_yardsticks(*group);
    if (std::ranges::all_of(plan.cases, [&cases](std::size_t index) { return compares_bits(cases[index]); })) {
      compute_yardsticks_on_demand(*group);
    }
  }
  if (group->streams) {
    builder.finish(first);
    stream(*group, *main_output(ports));
  }
  group->times.inputs_s = watch.seconds();
  return {std::move(group), std::move(prepared)};
}

}  // namespace numcheck::prepare
