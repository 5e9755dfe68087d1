#include "tolerance/certificate_data.hpp"

#include <algorithm>
#include <cstddef>

#include "tolerance/vacuity.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::int64_t kMostOutputs = 65'536;
constexpr std::int64_t kMostRows = 256;

std::vector<std::int64_t> evenly_spaced(std::int64_t size, std::int64_t most) {
  const std::int64_t count = std::min(size, most);
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    out[static_cast<std::size_t>(i)] = i * size / count;
  }
  return out;
}

bool is_sampled(const op::Sample* sample) {
  return sample != nullptr && !sample->all();
}

/// Positions in the comparison's arrays.
std::vector<std::int64_t> positions_of(const op::Port& port, const op::Sample* sample) {
  if (is_sampled(sample)) {
    return evenly_spaced(static_cast<std::int64_t>(sample->indices.size()), kMostOutputs);
  }
  const SubGrid grid = sub_grid(port);
  std::vector<std::int64_t> out;
  out.reserve(grid.rows.size() * grid.columns.size());
  for (const std::int64_t row : grid.rows) {
    for (const std::int64_t column : grid.columns) {
      out.push_back(row * port.cols + column);
    }
  }
  return out;
}

}  // namespace

SubGrid sub_grid(const op::Port& port) {
  if (port.elements() == 0) {
    return {};
  }
  const std::int64_t all_rows = port.batch * port.rows;
  const std::int64_t columns = std::min(port.cols, kMostOutputs / std::min(all_rows, kMostRows));
  return {evenly_spaced(all_rows, kMostOutputs / columns), evenly_spaced(port.cols, columns)};
}

op::Sample certificate_sample(const op::Port& port, const op::Sample* sample) {
  op::Sample out{positions_of(port, sample)};
  if (is_sampled(sample)) {
    for (std::int64_t& index : out.indices) {
      index = sample->indices[static_cast<std::size_t>(index)];
    }
  }
  return out;
}

CertificateData gather(const metric::CompareInput& input) {
  const op::Port& port = *input.port;
  const bool sampled = is_sampled(input.sample);
  const std::vector<std::int64_t> positions = positions_of(port, input.sample);
  CertificateData data;
  data.indices = certificate_sample(port, input.sample).indices;
  data.port = {.name = port.name, .role = port.role, .dtype = port.dtype};
  data.port.rows = sampled || positions.empty() ? 1 : static_cast<std::int64_t>(sub_grid(port).rows.size());
  data.port.cols = static_cast<std::int64_t>(positions.size()) / data.port.rows;
  data.port.ld = data.port.cols;
  data.port.batch_stride = data.port.rows * data.port.ld;
  for (const std::int64_t position : positions) {
    const auto at = static_cast<std::size_t>(position);
    data.expected.push_back(input.expected[at]);
    if (!input.magnitude.empty()) {
      data.magnitude.push_back(input.magnitude[at]);
      data.second_moment.push_back(input.second_moment[at]);
    }
    if (!sampled) {
      const std::int64_t matrix = port.rows * port.cols;
      const std::int64_t inside = position % matrix;
      data.transposed.push_back(position - inside + inside % port.rows * port.cols + inside / port.rows);
    }
  }
  return data;
}

}  // namespace numcheck::tolerance
