#include "plan/expand.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/strings.hpp"
#include "plan/id_index.hpp"
#include "plan/identify.hpp"
#include "plan/settings.hpp"

namespace numcheck::plan {
namespace {

// The most different cross-field mistakes that are reported for one case object.
constexpr std::size_t kMaxSentences = 5;

std::string count_text(std::uint64_t count) {
  return count == UINT64_MAX ? std::string("2^64 or more") : fmt::format("{}", count);
}

bool same_gates(const Case& a, const Case& b) {
  const auto key = [](const Case& c) {
    return std::tuple(c.tolerance.allclose_rtol, c.tolerance.allclose_atol, c.tolerance.max_ulp, c.tolerance.rel_l2,
                      c.tolerance.min_judged, c.timeout_s, c.only_if_new);
  };
  return key(a) == key(b) && a.tolerance.statistics == b.tolerance.statistics && a.known_issues == b.known_issues &&
         a.digest == b.digest;
}

/// Expands one case object after another and remembers what it has seen.
class Expander {
 public:
  Expander(std::uint64_t plan_seed, std::size_t cases, Reporter& reporter)
      : plan_seed_(plan_seed), reporter_(reporter) {
    cases_.reserve(cases);
    ids_.reserve(cases);
  }

  void add(const CaseSpec& spec) {
    begin(spec);
    const std::vector<std::vector<std::size_t>> groups = axis_groups(spec);
    const std::vector<AxisInfo> axes = axes_of(spec);
    std::vector<std::uint64_t> at(groups.size(), 0);
    for (bool more = true; more;) {
      Case c = base_;
      for (std::size_t g = 0; g < groups.size(); ++g) {
        for (const std::size_t axis : groups[g]) {
          setters_[axis](c, at[g]);
        }
      }
      add_case(std::move(c));
      more = false;
      for (std::size_t g = groups.size(); g-- > 0 && !more;) {  // odometer: the last group is the fastest
        more = ++at[g] < axes[groups[g].front()].count;
        at[g] = more ? at[g] : 0;
      }
    }
    finish();
  }

  [[nodiscard]] std::vector<Case> take() { return std::move(cases_); }

 private:
  struct Begin {
    std::size_t first;
    const Node* node;
  };
  struct Sentence {
    std::uint64_t count = 0;
    std::string first;
  };

  void begin(const CaseSpec& spec) {
    spec_ = &spec;
    begins_.push_back({cases_.size(), spec.node});
    total_ = dropped_ = 0;
    excluded_.assign(spec.exclude.size(), false);
    expected_.assign(spec.xfail.size(), false);
    sentences_.clear();
    ports_seen_.clear();
    computed_seen_.clear();
    first_dropped_.clear();
    base_ = Case{};
    base_.op = spec.op;
    base_.params.resize(spec.params.size());
    base_.algorithms = spec.algorithms;
    base_.tolerance = spec.tolerance;
    base_.tags = spec.tags;
    base_.timeout_s = spec.timeout_s;
    base_.only_if_new = spec.only_if_new;
    base_.seed = plan_seed_;
    base_.seed_in_id = !spec.seeds.empty();
    make_setters(spec);
  }

  /// In the same order as axes_of.
  void make_setters(const CaseSpec& spec) {
    setters_.clear();
    for (std::size_t i = 0; i < spec.params.size(); ++i) {
      setters_.push_back([i, values = spec.params[i].expand()](Case& c, std::uint64_t k) { c.params[i] = values[k]; });
    }
    setters_.push_back([&spec](Case& c, std::uint64_t k) { c.inputs = spec.inputs[k]; });
    setters_.push_back([&spec](Case& c, std::uint64_t k) { c.mode = spec.modes[k]; });
    setters_.push_back([&spec](Case& c, std::uint64_t k) { c.backend = spec.backends[k]; });
    setters_.push_back([&spec](Case& c, std::uint64_t k) { c.seed = spec.seeds.empty() ? c.seed : spec.seeds[k]; });
    setters_.push_back([&spec](Case& c, std::uint64_t k) { c.environment = spec.environments[k]; });
  }

  void add_case(Case c) {
    for (std::size_t i = 0; i < spec_->exclude.size(); ++i) {
      if (matches(spec_->exclude[i], c)) {
        excluded_[i] = true;
        return;
      }
    }
    ++total_;
    const std::vector<std::string> mistakes = c.op->check(c.params, *c.mode);
    if (!mistakes.empty()) {
      for (const std::string& mistake : mistakes) {
        if (sentences_.size() < kMaxSentences || sentences_.contains(mistake)) {
          Sentence& sentence = sentences_[mistake];
          if (sentence.count++ == 0) {
            identifier_.identify(c);
            sentence.first = c.id;
          }
        }
      }
      return;
    }
    keep_own_ports(c);
    for (std::size_t i = 0; i < spec_->xfail.size(); ++i) {
      if (matches(spec_->xfail[i].match, c)) {
        expected_[i] = true;
        c.known_issues.push_back(spec_->xfail[i].xfail);
      }
    }
    identifier_.identify(c);
    store(std::move(c));
  }

  /// Drops distributions of ports that this case lacks (c without beta) or computes: the id must not depend on them.
  void keep_own_ports(Case& c) {
    if (c.inputs.ports.empty() && !names_inputs()) {
      return;
    }
    const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
    std::set<std::string, std::less<>> names;
    for (const op::Port& port : ports) {
      if (port.has_distribution()) {
        names.emplace(port.name);
      } else if (port.role == op::Role::input) {
        computed_seen_.emplace(port.name);
      }
    }
    ports_seen_.insert(names.begin(), names.end());
    std::erase_if(c.inputs.ports, [&](const auto& port) { return !names.contains(port.first); });
  }

  /// True if the case object gives an input a distribution of its own, even one that is that of all.
  [[nodiscard]] bool names_inputs() const {
    return std::ranges::any_of(spec_->input_nodes,
                               [](const Node* node) { return node != nullptr && !port_members(*node).empty(); });
  }

  void store(Case c) {
    const std::size_t index = ids_.find_or_add(c.id, cases_);
    if (index == cases_.size()) {
      cases_.push_back(std::move(c));
      return;
    }
    Case& earlier = cases_[index];
    if (!same_gates(earlier, c)) {
      reporter_.error(*spec_->node, fmt::format("{} appears twice with different tolerance, time limit or xfail", c.id),
                      {{}, fmt::format("first at {}", reporter_.line_of(node_of(index)))});
      return;
    }
    for (std::string& tag : c.tags) {
      if (std::ranges::find(earlier.tags, tag) == earlier.tags.end()) {
        earlier.tags.push_back(std::move(tag));
      }
    }
    first_dropped_ = dropped_++ == 0 ? c.id : first_dropped_;
  }

  /// Where the object of a case is written.
  [[nodiscard]] const Node& node_of(std::size_t index) const {
    const auto after = std::ranges::upper_bound(begins_, index, {}, &Begin::first);
    return *std::prev(after)->node;
  }

  void finish() {
    report_sentences();
    report_ports();
    for (std::size_t i = 0; i < excluded_.size(); ++i) {
      if (!excluded_[i] && is_own(*spec_->exclude[i].node, "exclude")) {
        reporter_.warning(*spec_->exclude[i].node, "this \"exclude\" entry matches no case");
      }
    }
    for (std::size_t i = 0; i < expected_.size(); ++i) {
      if (!expected_[i] && is_own(*spec_->xfail[i].match.node, "xfail")) {
        reporter_.warning(*spec_->xfail[i].match.node, "this \"xfail\" entry matches no case");
      }
    }
    if (total_ == 0) {
      reporter_.warning(*spec_->node, "\"exclude\" leaves no case of this sweep");
    }
    if (dropped_ != 0) {
      reporter_.warning(*spec_->node,
                        fmt::format("{} case{} of this sweep repeat{} earlier ones and will run once", dropped_,
                                    dropped_ == 1 ? "" : "s", dropped_ == 1 ? "s" : ""),
                        {{}, "the first is " + first_dropped_});
    }
  }

  /// False for entries of "defaults", which need not match in every sweep.
  [[nodiscard]] bool is_own(const Node& entry, std::string_view key) const {
    const Node* list = spec_->node->find(key);
    return list != nullptr && std::ranges::any_of(list->items, [&entry](const Node& item) { return &item == &entry; });
  }

  void report_sentences() {
    for (const auto& [text, sentence] : sentences_) {
      std::string note;
      if (total_ > 1) {
        note = fmt::format("{} of {} cases of this sweep, the first is {}", sentence.count, total_, sentence.first);
      }
      if (spec_->inherited_params != nullptr && spec_->inherited_params != spec_->params_node) {
        note += fmt::format("{}parameters come from here and from \"defaults\" ({})", note.empty() ? "" : "; ",
                            reporter_.line_of(*spec_->inherited_params));
      }
      reporter_.error(*spec_->params_node, text, {{}, note});
    }
  }

  void report_ports() {
    if (ports_seen_.empty()) {
      return;
    }
    const std::vector<std::string_view> names(ports_seen_.begin(), ports_seen_.end());
    for (const Node* node : spec_->input_nodes) {
      for (const Member* port : node == nullptr ? std::vector<const Member*>() : port_members(*node)) {
        if (ports_seen_.contains(port->key)) {
          continue;
        }
        const bool computed = computed_seen_.contains(port->key);
        reporter_.error(
            *port,
            computed ? computed_input_text(*spec_->op, port->key)
                     : fmt::format("{} has no input {} with these parameters", spec_->op->name, quote(port->key)),
            {computed ? "" : suggestion(port->key, names, "inputs are:"), {}});
      }
    }
  }

  std::uint64_t plan_seed_;
  Reporter& reporter_;
  std::vector<Case> cases_;
  IdIndex ids_;
  std::vector<Begin> begins_;  ///< of the cases of each object
  Identifier identifier_;

  // For the current case object.
  const CaseSpec* spec_ = nullptr;
  Case base_;
  std::vector<std::function<void(Case&, std::uint64_t)>> setters_;
  std::vector<bool> excluded_;
  std::vector<bool> expected_;
  std::map<std::string, Sentence> sentences_;
  std::set<std::string, std::less<>> ports_seen_, computed_seen_;
  std::string first_dropped_;
  std::uint64_t total_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace

namespace {

/// Memory that an expanded case takes: itself, its parameters, an identifier of 200 bytes, entries in tables, and what the
/// plan's own texts add.
std::uint64_t bytes_of_case(const CaseSpec& spec) {
  constexpr std::uint64_t kIdentifierAndRest = 320;
  std::uint64_t bytes = sizeof(Case) + spec.params.size() * sizeof(op::Value) + kIdentifierAndRest;
  for (const std::string& tag : spec.tags) {
    bytes += sizeof(std::string) + tag.size();
  }
  for (const XFailRule& rule : spec.xfail) {
    const XFail& x = rule.xfail;
    bytes += 2 * (sizeof x + x.reason.size() + x.cause.size() + x.error.size() + x.link.size() + x.place.file.size());
  }
  return bytes;
}

}  // namespace

void check_case_count(const std::vector<CaseSpec>& specs, const Limits& limits, Reporter& reporter) {
  std::uint64_t total = 0;
  std::uint64_t bytes = 0;
  const CaseSpec* largest = nullptr;
  for (const CaseSpec& spec : specs) {
    total = saturating_sum(total, spec.count());
    bytes = saturating_sum(bytes, saturating_product(spec.count(), bytes_of_case(spec)));
    largest = largest == nullptr || spec.count() > largest->count() ? &spec : largest;
  }
  if (total <= limits.max_cases && bytes <= limits.case_memory_bytes) {
    return;
  }
  std::string axes;
  for (const AxisInfo& axis : axes_of(*largest)) {
    if (axis.count > 1) {
      axes += fmt::format("{}{} {}", axes.empty() ? "" : " x ", axis.name, count_text(axis.count));
    }
  }
  reporter.error(
      *largest->node,
      total > limits.max_cases
          ? fmt::format("the plan has {} cases; more than {} need --max-cases", count_text(total), limits.max_cases)
          : fmt::format("the plan has {} cases, which take about {} of memory; the limit is {}", total,
                        core::human_bytes(bytes), core::human_bytes(limits.case_memory_bytes)),
      {{}, fmt::format("this sweep has {}: {}", count_text(largest->count()), axes)});
}

std::vector<Case> expand(const std::vector<CaseSpec>& specs, std::uint64_t plan_seed, Reporter& reporter) {
  std::uint64_t most = 0;  // fewer are left where "exclude" drops some, or cases repeat
  for (const CaseSpec& spec : specs) {
    most = saturating_sum(most, spec.count());
  }
  Expander expander(plan_seed, most, reporter);
  for (const CaseSpec& spec : specs) {
    expander.add(spec);
  }
  return expander.take();
}

}  // namespace numcheck::plan
