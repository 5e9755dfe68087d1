// How the axes of a sweep nest.
#include <algorithm>

#include "plan/case_spec.hpp"

namespace numcheck::plan {

std::vector<AxisInfo> axes_of(const CaseSpec& spec) {
  std::vector<AxisInfo> axes;
  const std::vector<op::Field>& fields = spec.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    axes.push_back({fields[i].name, spec.params[i].count()});
  }
  axes.push_back({"inputs", spec.inputs.size()});
  axes.push_back({"mode", spec.modes.size()});
  axes.push_back({"backend", spec.backends.size()});
  axes.push_back({"seed", std::max<std::uint64_t>(1, spec.seeds.size())});
  axes.push_back({"environment", spec.environments.size()});
  return axes;
}

std::vector<std::vector<std::size_t>> axis_groups(const CaseSpec& spec) {
  const std::vector<AxisInfo> axes = axes_of(spec);
  const auto index_of = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(axes, name, &AxisInfo::name) - axes.begin());
  };
  std::vector<std::vector<std::size_t>> groups;
  std::vector<bool> done(axes.size(), false);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (done[i]) {
      continue;
    }
    std::vector<std::size_t> group = {i};
    for (const std::vector<std::string>& zipped : spec.zip) {
      if (std::ranges::find(zipped, axes[i].name) != zipped.end()) {
        group.clear();
        std::ranges::transform(zipped, std::back_inserter(group), index_of);
      }
    }
    for (const std::size_t member : group) {
      done[member] = true;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

std::uint64_t CaseSpec::count() const {
  const std::vector<AxisInfo> axes = axes_of(*this);
  std::uint64_t product = 1;
  for (const std::vector<std::size_t>& group : axis_groups(*this)) {
    product = saturating_product(product, axes[group.front()].count);
  }
  return product;
}

}  // namespace numcheck::plan
