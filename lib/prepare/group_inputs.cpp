// Generates, rounds and stores the inputs of a group, case by case, keeping what cases share.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"
#include "data/inputs.hpp"
#include "data/nan_payloads.hpp"
#include "data/scaling.hpp"
#include "prepare/group.hpp"
#include "prepare/sampling.hpp"

namespace numcheck::prepare {
namespace {

constexpr std::size_t kReferenceSample = 65'536;   // outputs referenced when a full reference is too large
constexpr double kTotalErrorFlops = 4e9;           // above it the total error is taken on a sample
constexpr std::size_t kTotalErrorSample = 16'384;  // outputs of that sample
constexpr std::size_t kScaleSample = 256;          // outputs looked at to choose an output's quantising scale
constexpr double kScaleHeadroom = 1.25;            // the sample's largest output is not the largest of all

/// Prepares the cases of one group in their order.
class GroupBuilder {
 public:
  /// All must outlive the builder.
  GroupBuilder(Group& group, const Allocate& allocate, const GivenInputs& given)
      : group_(group), allocate_(allocate), given_(given) {}

  /// Generates, derives, rounds and stores what the case needs and no earlier case of the group had.
  [[nodiscard]] PreparedCase prepare(const plan::Case& c);

 private:
  /// An input as one case stores it.
  struct Stored {
    std::shared_ptr<worker::SharedBlock> block;
    float scale = 1;
    float scale_inv = 1;

    void scale_to(double largest, core::Dtype dtype) {
      scale = data::scale_from_amax(largest, dtype);
      scale_inv = data::scale_inverse(scale);
    }
  };

  /// Given ones are stored like generated ones.
  [[nodiscard]] bool is_generated(const op::Port& port) const { return given_.has(port) || port.is_generated(); }
  /// Draws of the port's distribution, once per group, or what is given.
  [[nodiscard]] SharedDoubles draws_of(const plan::Case& c, const op::Port& port, std::size_t number);
  /// Unrounded values: the draws, or what is derived from the unrounded inputs. Adds the operand to the group.
  [[nodiscard]] SharedDoubles values_of(const plan::Case& c, const std::vector<op::Port>& ports, const op::Port& port,
                                        std::size_t number);
  [[nodiscard]] Stored store_generated(const plan::Case& c, const std::vector<op::Port>& ports, const op::Port& port,
                                       std::size_t number);
  /// Derived from the rounding's operands so far.
  [[nodiscard]] Stored store_derived(const plan::Case& c, const std::vector<op::Port>& ports, const Rounding& rounding,
                                     const op::Port& port, std::size_t number, const std::string& rounding_key);
  /// `stored` is parallel to the case's ports.
  [[nodiscard]] std::shared_ptr<Rounding> rounding_of(const plan::Case& c, PreparedCase& prepared,
                                                      std::vector<Stored>& stored);
  void add_operand(Rounding& rounding, const op::Port& port, const Stored& stored, bool packs, bool needs_numbers);
  [[nodiscard]] std::shared_ptr<worker::SharedBlock> store(const std::string& key, const op::Port& port,
                                                           std::span<const double> values, float scale);
  /// An operand's scale port holds the dequantising factor, an output's the quantising one.
  [[nodiscard]] float scale_port_value(const plan::Case& c, PreparedCase& prepared, const op::Port& port);
  [[nodiscard]] double largest_output(const Rounding& rounding, const op::Port& output,
                                      const std::string& rounding_key);

  Group& group_;
  const Allocate& allocate_;
  const GivenInputs& given_;
  std::map<std::string, SharedDoubles, std::less<>> draws_;
  std::map<std::string, SharedDoubles, std::less<>> values_;
  std::map<std::string, std::shared_ptr<worker::SharedBlock>> stored_;
  std::map<std::string, Stored> derived_;  ///< per layout and rounding
  std::map<std::string, double> largest_;  ///< per output and rounding
};

const op::Port* main_output(const std::vector<op::Port>& ports) {
  const auto found = std::ranges::find(ports, op::Role::output, &op::Port::role);
  return found == ports.end() ? nullptr : &*found;
}

/// Whether an input has a row for each of the main output's, and is worth decoding again.
bool has_rows_to_pack(const std::vector<op::Port>& ports, const op::Port& input) {
  constexpr std::int64_t kFewest = std::int64_t{1} << 16;
  const op::Port* main = main_output(ports);
  return input.elements() >= kFewest && input.batch * input.rows == main->batch * main->rows;
}

/// Whether doubles of operands are asked for while a case is prepared: to derive inputs, or to choose a scale.
bool needs_operands(const std::vector<op::Port>& ports) {
  return std::ranges::any_of(ports, [](const op::Port& port) {
    return port.role == op::Role::scale || port.role == op::Role::amax ||
           (port.role == op::Role::input && !port.is_generated());
  });
}

/// The largest magnitude of numbers that are stored in a format, if none overflows there; not finite if one may.
double largest_rounded(double largest, core::Dtype format) {
  const bool is_ieee = core::dtype_info(format).storage_bytes > 1;  // others saturate, infinities included
  return is_ieee ? core::round_to(largest, format) : std::numeric_limits<double>::infinity();
}

bool is_scaled(const std::vector<op::Port>& ports, std::string_view port) {
  return std::ranges::any_of(ports, [port](const op::Port& p) { return p.role == op::Role::scale && p.of == port; });
}

std::string format_key(const op::Port& port) {
  return std::string(port.name) + "|" + std::string(core::dtype_info(port.dtype).name);
}

std::string layout_key(const op::Port& port) {
  return format_key(port) + "|" + std::to_string(port.ld) + "|" + std::to_string(port.offset_bytes);
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

core::Buffer<double> copy_of(std::span<const double> values) {
  core::Buffer<double> copy(values.size());
  std::ranges::copy(values, copy.data());
  return copy;
}

op::Operand operand_of(const op::Port& port, const double* data, double scale) {
  return {port.name, data, port.batch, port.rows, port.cols, scale, port.dtype};
}

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

SharedDoubles GroupBuilder::draws_of(const plan::Case& c, const op::Port& port, std::size_t number) {
  SharedDoubles& draws = draws_[std::string(port.name)];
  if (draws == nullptr) {
    draws = given_.of(port);
  }
  if (draws == nullptr) {
    const core::Span span("draw", port.name);
    data::ExactRole role;
    if (c.inputs.exact_leg()) {
      role.plan = c.op->exact_plan(c.params, *c.mode);
      role.kind = number == 0   ? data::ExactRole::Kind::first
                  : number == 1 ? data::ExactRole::Kind::second
                                : data::ExactRole::Kind::addend;
    }
    role.reduction_along_rows = c.op->reduces_along_rows != nullptr && c.op->reduces_along_rows(c.params, port.name);
    const core::StreamId stream{c.seed, core::stream_word(c.op->name), core::stream_word(port.name)};
    core::Buffer<double> drawn = data::generate_port(port, c.inputs.of(port.name), stream, role);
    if (c.inputs.exact_leg() && role.plan.reason.empty() && c.op->exact_inputs != nullptr) {
      c.op->exact_inputs(c.params, port, drawn.span());
    }
    draws = std::make_shared<const core::Buffer<double>>(std::move(drawn));
  }
  return draws;
}

SharedDoubles GroupBuilder::values_of(const plan::Case& c, const std::vector<op::Port>& ports, const op::Port& port,
                                      std::size_t number) {
  SharedDoubles& values = values_[std::string(port.name)];
  if (values == nullptr) {
    values = draws_of(c, port, number);
    if (!is_generated(port)) {
      const core::Span span("derive", port.name);
      core::Buffer<double> derived = copy_of(values->span());
      group_.row->reference.derive({&group_.params, group_.unrounded, &port}, derived.span());
      values = std::make_shared<const core::Buffer<double>>(std::move(derived));
    }
    group_.unrounded.push_back(
        {port.name, values->data(), port.batch, port.rows, port.cols, static_cast<double>(given_.factor(ports, port))});
    group_.unrounded_owners.push_back(values);
  }
  return values;
}

std::shared_ptr<worker::SharedBlock> GroupBuilder::store(const std::string& key, const op::Port& port,
                                                         std::span<const double> values, float scale) {
  std::shared_ptr<worker::SharedBlock>& block = stored_[key];
  if (block == nullptr) {
    const core::Span span("store", port.name);
    block = allocate_(port.extent_bytes(), worker::use_of(port));
    data::store_port(port, values, scale, block->bytes().first(port.extent_bytes()));
    const std::span<std::byte> stored = block->bytes().first(port.extent_bytes());
    if (group_.row->reference.moved != nullptr && !given_.has(port)) {
      data::vary_nans(port, stored);
    } else if (const auto bits = given_.bits(port); bits.size() == stored.size()) {
      std::ranges::copy(bits, stored.begin());
    }
  }
  return block;
}

GroupBuilder::Stored GroupBuilder::store_generated(const plan::Case& c, const std::vector<op::Port>& ports,
                                                   const op::Port& port, std::size_t number) {
  const SharedDoubles values = values_of(c, ports, port, number);
  Stored stored;
  if (given_.has(port)) {
    stored.scale_inv = given_.factor(ports, port);
  } else if (is_scaled(ports, port.name) && !c.inputs.exact_leg()) {
    stored.scale_to(data::absolute_max(values->span()), port.dtype);
  }
  stored.block = store(layout_key(port), port, values->span(), stored.scale);
  return stored;
}

GroupBuilder::Stored GroupBuilder::store_derived(const plan::Case& c, const std::vector<op::Port>& ports,
                                                 const Rounding& rounding, const op::Port& port, std::size_t number,
                                                 const std::string& rounding_key) {
  (void)values_of(c, ports, port, number);  // the unrounded operand
  const std::string key = layout_key(port) + "|from " + rounding_key;
  const auto found = derived_.find(key);
  if (found != derived_.end()) {
    return found->second;
  }
  core::Buffer<double> derived = copy_of(draws_of(c, port, number)->span());
  {
    const core::Span span("derive", port.name);
    group_.row->reference.derive({&group_.params, rounding.operands, &port}, derived.span());
  }
  Stored stored;
  if (is_scaled(ports, port.name)) {
    stored.scale_to(data::absolute_max(derived.span()), port.dtype);
  }
  stored.block = store(key, port, derived.span(), stored.scale);
  return derived_.emplace(key, std::move(stored)).first->second;
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
    std::size_t number = 0;
    for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
      const op::Port& port = prepared.ports[i];
      if (port.role != op::Role::input) {
        continue;
      }
      if (is_generated(port) == generated) {
        stored[i] = generated ? store_generated(c, prepared.ports, port, number)
                              : store_derived(c, prepared.ports, *rounding, port, number, key);
        prepared.scale[std::string(port.name)] = stored[i].scale;
        if (is_new) {
          const bool packs = group_.streams && has_rows_to_pack(prepared.ports, port);
          add_operand(*rounding, port, stored[i], packs, !packs || needs_operands(prepared.ports));
        }
      }
      ++number;
    }
  }
  return rounding;
}

void GroupBuilder::add_operand(Rounding& rounding, const op::Port& port, const Stored& stored, bool packs,
                               bool needs_numbers) {
  SharedDoubles values = values_.find(port.name)->second;
  const std::span<const std::byte> bytes = stored.block->bytes().first(port.extent_bytes());
  double& largest = rounding.largest_code[std::string(port.name)];
  // Derived values are no FP32 numbers before they are stored.
  if ((port.dtype != core::Dtype::fp32 || !is_generated(port)) && !given_.is_unrounded(port)) {
    rounding.identity = false;
    largest = needs_numbers || stored.scale != 1 ? std::numeric_limits<double>::infinity()
                                                 : largest_rounded(data::absolute_max(values->span()), port.dtype);
    if (!std::isfinite(largest)) {
      const core::Span span("load", port.name);
      values = std::make_shared<const core::Buffer<double>>(data::load_port(port, bytes));
      largest = data::absolute_max(values->span());
    }
  } else {
    largest = data::absolute_max(values->span());
  }
  rounding.operands.push_back(operand_of(port, values->data(), static_cast<double>(stored.scale_inv)));
  rounding.packed.push_back(packs ? PackedOperand{port, bytes, stored.block} : PackedOperand());
  rounding.owners.push_back(std::move(values));
}

double GroupBuilder::largest_output(const Rounding& rounding, const op::Port& output, const std::string& rounding_key) {
  const auto key_of = [&rounding_key](std::string_view port) { return std::string(port) + "|" + rounding_key; };
  if (const auto known = largest_.find(key_of(output.name)); known != largest_.end()) {
    return known->second;
  }
  const core::Span span("choose scale", output.name);
  const op::Reference& reference = group_.row->reference;
  op::ReferenceRequest request{&group_.params, rounding.operands, {}, true};
  if (!reference.tracked()) {
    request.sample = choose_sample(output, kScaleSample);
  }
  const op::Values values = reference.values(request);
  // A tracked reference gives all outputs at once, a sample is that of the given one.
  for (const op::OutputValues& each : values.outputs) {
    if (reference.tracked() || each.port == output.name) {
      const double headroom = reference.tracked() ? 1 : kScaleHeadroom;
      largest_.emplace(key_of(each.port), headroom * data::absolute_max(each.value.span()));
    }
  }
  const auto found = largest_.find(key_of(output.name));
  if (found == largest_.end()) {
    throw core::InternalError("the reference gives no output " + std::string(output.name));
  }
  return found->second;
}

float GroupBuilder::scale_port_value(const plan::Case& c, PreparedCase& prepared, const op::Port& port) {
  if (const std::optional<float> given = given_.number(port); given.has_value()) {
    prepared.scale.try_emplace(std::string(port.of), *given);
    return *given;
  }
  const auto operand = prepared.scale.find(port.of);
  if (operand != prepared.scale.end()) {
    return data::scale_inverse(operand->second);
  }
  const op::Port& output = op::port_named(prepared.ports, port.of);
  float scale = 1;
  if (!c.inputs.exact_leg() && output.elements() > 0) {
    scale = data::scale_from_amax(largest_output(*prepared.rounding, output, rounding_key_of(prepared.ports)),
                                  output.dtype);
  }
  prepared.scale[std::string(port.of)] = scale;
  return scale;
}

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
  // Tracked references cost a few operations per element: they are never sampled.
  const op::Port* output = group->row->reference.tracked() ? nullptr : main_output(ports);
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
  if (group->streams) {
    stream(*group, *main_output(ports));
  }
  group->times.inputs_s = watch.seconds();
  return {std::move(group), std::move(prepared)};
}

}  // namespace numcheck::prepare
