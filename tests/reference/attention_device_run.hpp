// A case of attention, and what a device makes of it, for tests of its diagnoses.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"
#include "op_problem.hpp"
#include "reference/attention_diagnosis.hpp"

namespace numcheck::reference::testing {

/// A case, and what a device delivers: at first what is expected, rounded to the outputs' formats.
class DeviceRun {
 public:
  DeviceRun(const op::Op& op, const op::Reference& reference, const op::AttentionParams& p, std::string_view mode,
            double sigma = 1)
      : p_(p), problem_{&op, reference, op::to_params(p), mode} {
    for (const op::Port& port : problem_.ports()) {
      if (port.role == op::Role::input) {
        const auto size = static_cast<std::size_t>(port.elements());
        inputs_[std::string(port.name)] = !port.is_generated()
                                              ? derived(problem_, inputs_, port.name, std::vector<double>(size))
                                              : noise(size, static_cast<unsigned>(inputs_.size()) + 1, sigma, 0);
      }
    }
    expected_ = evaluate(problem_, inputs_);
    for (const op::OutputValues& output : expected_.outputs) {
      const core::Dtype format = op::port_named(ports_, output.port).dtype;
      std::vector<double>& numbers = got_[std::string(output.port)] = copied(output.value);
      std::ranges::transform(numbers, numbers.begin(), [format](double y) { return core::round_to(y, format); });
    }
  }

  [[nodiscard]] std::vector<double>& operator[](const std::string& port) { return got_[port]; }

  [[nodiscard]] double largest_expected(std::string_view port) const {
    const std::span<const double> y = std::ranges::find(expected_.outputs, port, &op::OutputValues::port)->value.span();
    return std::ranges::max(y | std::views::transform([](double value) { return std::fabs(value); }));
  }

  /// Elements of a sequence, positions beyond its lengths and all heads included.
  [[nodiscard]] std::vector<std::size_t> elements(const std::string& port, std::int64_t batch) const {
    const op::Side side = port == "dk" || port == "dv" ? op::Side::keys : op::Side::queries;
    const std::int64_t channels = port == "lse" ? 1 : p_.d;
    std::vector<std::size_t> list;
    for (std::int64_t head = 0; head < op::heads_of(p_, side); ++head) {
      const op::HeadPlace place =
          port == "lse" ? op::statistic_place(p_, batch, head) : op::head_place(p_, side, batch, head, channels);
      for (std::int64_t i = 0; i < op::positions(p_, side, batch); ++i) {
        for (std::int64_t c = 0; c < channels; ++c) {
          list.push_back(static_cast<std::size_t>(place.first + i * place.stride + c));
        }
      }
    }
    return list;
  }

  /// NaN in a sequence; `unwritten`: which nobody has computed.
  void lose(const std::string& port, std::int64_t batch, bool unwritten = true) {
    for (const std::size_t at : elements(port, batch)) {
      got_[port][at] = std::numeric_limits<double>::quiet_NaN();
      if (unwritten) {
        unwritten_[port].push_back(at);
      }
    }
    std::ranges::sort(unwritten_[port]);
  }

  /// dk and dv of the keys [first, last] of the first sequence without the parts of its queries [begin, end): those have no
  /// gradient.
  void lose_queries(std::int64_t begin, std::int64_t end, std::int64_t first, std::int64_t last) {
    Inputs fewer = inputs_;
    for (std::int64_t head = 0; head < p_.heads; ++head) {
      const op::HeadPlace place = op::head_place(p_, op::Side::queries, 0, head, p_.value_channels());
      for (std::int64_t i = begin; i < end; ++i) {
        std::fill_n(fewer["do"].begin() + place.first + i * place.stride, p_.value_channels(), 0.0);
      }
    }
    const op::Values values = evaluate(problem_, fewer);
    for (const std::string port : {"dk", "dv"}) {
      const std::vector<double> lacking = value_of(values, port);
      const core::Dtype format = op::port_named(ports_, port).dtype;
      for (std::int64_t head = 0; head < p_.key_heads(); ++head) {
        const op::HeadPlace place = op::head_place(p_, op::Side::keys, 0, head, p_.d);
        for (std::int64_t at = place.first + first * place.stride; at < place.first + last * place.stride + p_.d;
             ++at) {
          got_[port][static_cast<std::size_t>(at)] = core::round_to(lacking[static_cast<std::size_t>(at)], format);
        }
      }
    }
  }

  /// The share of what is wrong with a port that a cause explains; 0 if it is not named.
  [[nodiscard]] double share(std::string_view port, std::string_view cause, op::Finding::About about) const {
    std::vector<op::Delivered> delivered;
    for (const auto& [name, numbers] : got_) {
      const auto unwritten = unwritten_.find(name);
      delivered.push_back({name, numbers, op::port_named(ports_, name).dtype, 1,
                           unwritten == unwritten_.end() ? std::span<const std::size_t>() : unwritten->second});
    }
    const std::vector<op::Operand> operands = operands_of(problem_, inputs_);
    const op::Sample all;
    const op::FindingRequest request{&problem_.params, operands, &expected_, delivered, &all};
    const bool forward = problem_.op == &op::attention_fwd();
    double share = 0;
    for (const op::Finding& finding : forward ? diagnose_attention(request) : diagnose_attention_gradients(request)) {
      share = finding.port == port && finding.cause == cause && finding.about == about ? finding.measured : share;
    }
    return share;
  }

 private:
  op::AttentionParams p_;
  Problem problem_;
  std::vector<op::Port> ports_ = problem_.ports();
  Inputs inputs_;
  op::Values expected_;
  std::map<std::string, std::vector<double>, std::less<>> got_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> unwritten_;
};

}  // namespace numcheck::reference::testing
