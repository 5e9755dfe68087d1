#include "reference/attention_compared.hpp"

#include <algorithm>
#include <utility>

#include "reference/cause.hpp"

namespace numcheck::reference {

bool Compared::is_unwritten(std::size_t at) const noexcept {
  return std::ranges::binary_search(unwritten, at);
}

std::vector<std::size_t> Compared::judged() const {
  std::vector<bool> counts(got.size(), true);
  for (const op::OutputValues::Range& range : outside) {
    std::fill(counts.begin() + range.begin, counts.begin() + range.end, false);
  }
  std::vector<std::size_t> elements;
  for (std::size_t at = 0; at < counts.size(); ++at) {
    if (counts[at]) {
      elements.push_back(at);
    }
  }
  return elements;
}

double largest_magnitude(std::span<const double> values) {
  double most = 0;
  for (const double value : values) {
    most = std::isfinite(value) ? std::fmax(most, std::fabs(value)) : most;
  }
  return most;
}

std::optional<Compared> compared(const op::FindingRequest& request, std::string_view port) {
  const auto got = std::ranges::find(request.outputs, port, &op::Delivered::port);
  const auto expected = std::ranges::find(request.expected->outputs, port, &op::OutputValues::port);
  if (got == request.outputs.end() || expected == request.expected->outputs.end() || !request.sample->all()) {
    return {};
  }
  return Compared{port,
                  got->value,
                  expected->value.span(),
                  got->unwritten,
                  expected->outside,
                  got->dtype,
                  expected->deviation.span()};
}

void add_if_explained(std::vector<op::Finding>& findings, const op::KnownCause& known, const Compared& output,
                      op::Finding::About about, double share, std::string cause) {
  if (share >= kLeastExplained) {
    findings.push_back(cause_finding(known, output.port, share, std::move(cause), "what is wrong", about));
  }
}

}  // namespace numcheck::reference
