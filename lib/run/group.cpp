#include "run/group.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <utility>

#include "core/error.hpp"
#include "data/inputs.hpp"
#include "data/scaling.hpp"
#include "run/sampling.hpp"

namespace numcheck::run {
namespace {

constexpr std::size_t kReferenceSample = 65'536;   // outputs referenced when a full reference is too large
constexpr double kTotalErrorFlops = 4e9;           // above it the total error is taken on a sample
constexpr std::size_t kTotalErrorSample = 16'384;  // outputs of that sample
constexpr std::size_t kScaleSample = 256;          // outputs looked at to choose an output's quantising scale
constexpr double kScaleHeadroom = 1.25;            // the sample's largest output is not the largest of all

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

op::Params without_storage(const plan::Case& c) {
  op::Params params = c.params;
  const std::vector<op::Field>& fields = c.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].storage_only) {
      params[i] = fields[i].fallback;
    }
  }
  return params;
}

const op::Port* main_output(const std::vector<op::Port>& ports) {
  const auto found = std::ranges::find(ports, op::Role::output, &op::Port::role);
  return found == ports.end() ? nullptr : &*found;
}

bool is_scaled(const std::vector<op::Port>& ports, std::string_view port) {
  return std::ranges::any_of(ports, [port](const op::Port& p) { return p.role == op::Role::scale && p.of == port; });
}

/// Builds a group case by case, keeping what cases share.
class GroupBuilder {
 public:
  using Allocate = std::function<std::shared_ptr<SharedBlock>(std::size_t)>;

  GroupBuilder(Group& group, const Allocate& allocate) : group_(group), allocate_(allocate) {}

  PreparedCase prepare(const plan::Case& c) {
    PreparedCase prepared{.c = &c, .ports = c.op->ports(c.params, *c.mode)};
    std::size_t input_number = 0;
    std::vector<std::shared_ptr<SharedBlock>> stored(prepared.ports.size());
    for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
      if (prepared.ports[i].role == op::Role::input) {
        stored[i] = store(c, prepared, prepared.ports[i], input_number++);
      }
    }
    prepared.rounding = rounding_of(c, prepared);
    for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
      const op::Port& port = prepared.ports[i];
      std::shared_ptr<SharedBlock> block = stored[i];
      if (block == nullptr) {
        block = allocate_(port.extent_bytes());
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

 private:
  /// The port's values, generated once per group.
  const core::Buffer<double>& values_of(const plan::Case& c, const op::Port& port, std::size_t number) {
    const auto found = values_.find(port.name);
    if (found != values_.end()) {
      return *found->second;
    }
    data::ExactRole role;
    if (c.inputs.exact_leg()) {
      role.plan = c.op->exact_plan(c.params, *c.mode);
      role.kind = number == 0   ? data::ExactRole::Kind::first
                  : number == 1 ? data::ExactRole::Kind::second
                                : data::ExactRole::Kind::addend;
      role.reduction_along_rows = c.op->reduces_along_rows(c.params, port.name);
    }
    const core::StreamId stream{c.seed, core::stream_word(c.op->name), core::stream_word(port.name)};
    auto values =
        std::make_shared<const core::Buffer<double>>(data::generate_port(port, c.inputs.of(port.name), stream, role));
    group_.unrounded.push_back({port.name, values->data(), port.batch, port.rows, port.cols, 1.0});
    group_.unrounded_owners.push_back(values);
    return *values_.emplace(port.name, std::move(values)).first->second;
  }

  std::shared_ptr<SharedBlock> store(const plan::Case& c, PreparedCase& prepared, const op::Port& port,
                                     std::size_t number) {
    const core::Buffer<double>& values = values_of(c, port, number);
    float scale = 1;
    if (is_scaled(prepared.ports, port.name) && !c.inputs.exact_leg()) {
      scale = data::scale_from_amax(data::absolute_max(values.span()), port.dtype);
    }
    prepared.scale[std::string(port.name)] = scale;
    const std::string key = std::string(port.name) + "|" + std::string(core::dtype_info(port.dtype).name) + "|" +
                            std::to_string(port.ld) + "|" + std::to_string(port.offset_bytes);
    std::shared_ptr<SharedBlock>& block = stored_[key];
    if (block == nullptr) {
      block = allocate_(port.extent_bytes());
      data::store_port(port, values.span(), scale, block->bytes().first(port.extent_bytes()));
    }
    last_stored_[std::string(port.name)] = block;
    return block;
  }

  std::shared_ptr<Rounding> rounding_of(const plan::Case& c, const PreparedCase& prepared) {
    std::string key;
    for (const op::Port& port : prepared.ports) {
      if (port.role == op::Role::input) {
        key += std::string(port.name) + ":" + std::string(core::dtype_info(port.dtype).name) + ";";
      }
    }
    std::shared_ptr<Rounding>& rounding = group_.roundings[key];
    if (rounding != nullptr) {
      return rounding;
    }
    rounding = std::make_shared<Rounding>();
    group_.in_order.push_back(rounding);
    rounding->params = group_.params;
    rounding->values = rounding->promise.get_future().share();
    for (const op::Port& port : prepared.ports) {
      if (port.role == op::Role::input) {
        add_operand(*rounding, port, prepared.scale.find(port.name)->second);
      }
    }
    (void)c;
    return rounding;
  }

  void add_operand(Rounding& rounding, const op::Port& port, float scale) {
    SharedDoubles values = values_.find(port.name)->second;
    if (port.dtype != core::Dtype::fp32) {
      rounding.identity = false;
      const std::span<const std::byte> bytes = last_stored_[std::string(port.name)]->bytes();
      values = std::make_shared<const core::Buffer<double>>(data::load_port(port, bytes.first(port.extent_bytes())));
    }
    const double scale_inv = static_cast<double>(data::scale_inverse(scale));
    rounding.operands.push_back({port.name, values->data(), port.batch, port.rows, port.cols, scale_inv});
    rounding.largest_code[std::string(port.name)] = data::absolute_max(values->span());
    rounding.owners.push_back(std::move(values));
  }

  /// An operand's scale port holds the dequantising factor, an output's the quantising one.
  float scale_port_value(const plan::Case& c, PreparedCase& prepared, const op::Port& port) {
    const auto operand = prepared.scale.find(port.of);
    if (operand != prepared.scale.end()) {
      return data::scale_inverse(operand->second);
    }
    const op::Port& output = op::port_named(prepared.ports, port.of);
    float scale = 1;
    if (!c.inputs.exact_leg() && output.elements() > 0) {
      op::ReferenceRequest request{&group_.params, prepared.rounding->operands, choose_sample(output, kScaleSample)};
      const op::Values values = group_.row->reference.values(request);
      scale =
          data::scale_from_amax(kScaleHeadroom * data::absolute_max(values.outputs.at(0).value.span()), output.dtype);
    }
    prepared.scale[std::string(port.of)] = scale;
    return scale;
  }

  Group& group_;
  const Allocate& allocate_;
  std::map<std::string, SharedDoubles, std::less<>> values_;
  std::map<std::string, std::shared_ptr<SharedBlock>> stored_;
  std::map<std::string, std::shared_ptr<SharedBlock>> last_stored_;
};

template <class Promise, class Compute>
void fulfil(Promise& promise, const Compute& compute) {
  try {
    promise.set_value(compute());
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

void compute_rounding(const Group& group, Rounding& rounding) {
  const auto start = std::chrono::steady_clock::now();
  fulfil(rounding.promise, [&group, &rounding] {
    const op::ReferenceRequest request{&group.params, rounding.operands, group.sample};
    return std::make_shared<const op::Values>(group.row->reference.values(request));
  });
  rounding.reference_s = seconds_since(start);
}

}  // namespace

std::shared_ptr<Group> prepare_group(const std::vector<plan::Case>& cases, const GroupPlan& plan, Catalog catalog,
                                     double flops_limit,
                                     const std::function<std::shared_ptr<SharedBlock>(std::size_t)>& allocate,
                                     std::vector<PreparedCase>& prepared) {
  const auto start = std::chrono::steady_clock::now();
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
  const op::Port* output = main_output(ports);
  if (output != nullptr && first.op->flops(first.params) > flops_limit) {
    group->sample = choose_sample(*output, kReferenceSample);
  }
  GroupBuilder builder(*group, allocate);
  for (const std::size_t index : plan.cases) {
    prepared.push_back(builder.prepare(cases[index]));
  }
  // What is sampled must not depend on which other cases of the group run: a resumed run or a shard gives the same
  // record.
  group->total_sample = group->sample;
  if (output != nullptr && first.op->flops(first.params) > kTotalErrorFlops &&
      static_cast<std::size_t>(output->elements()) > kTotalErrorSample) {
    group->total_sample = choose_sample(*output, kTotalErrorSample);
  }
  group->inputs_s = seconds_since(start);
  return group;
}

void compute_references(Group& group) {
  const auto start = std::chrono::steady_clock::now();
  fulfil(group.yardstick_promise, [&group] {
    const op::ReferenceRequest request{&group.params, group.unrounded, group.sample};
    return std::make_shared<const op::Yardsticks>(group.row->reference.yardsticks(request));
  });
  group.yardsticks_s = seconds_since(start);
  // Cases are compared in their order, each as soon as its rounding is there: so the total error's values, which all of
  // them want, come first, unless a rounding gives them for nothing.
  const auto identity = std::ranges::find_if(group.in_order, [](const auto& rounding) { return rounding->identity; });
  const bool only_identity =
      std::ranges::all_of(group.in_order, [](const auto& rounding) { return rounding->identity; });
  const bool shared =
      identity != group.in_order.end() && (only_identity || group.total_sample.indices == group.sample.indices);
  if (!shared) {
    fulfil(group.total_promise, [&group] {
      const op::ReferenceRequest request{&group.params, group.unrounded, group.total_sample};
      return std::make_shared<const op::Values>(group.row->reference.values(request));
    });
  }
  for (const auto& rounding : group.in_order) {
    compute_rounding(group, *rounding);
    if (shared && rounding == *identity) {
      fulfil(group.total_promise, [&rounding] { return rounding->values.get(); });
    }
  }
}

}  // namespace numcheck::run
