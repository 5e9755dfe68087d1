#include "tolerance/certificate_data.hpp"

#include <algorithm>
#include <cstddef>

#include "core/parallel.hpp"
#include "tolerance/vacuity.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::int64_t kMostOutputs = 65'536;
constexpr std::int64_t kMostRows = 256;
constexpr std::int64_t kMostStatistics = 4096;  ///< of an output with a number for each row: more do not tell more
constexpr std::size_t kChunk = 2048;            // elements per task

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

/// Converts positions in the comparison's arrays to indices in the output.
std::vector<std::int64_t> indices_of(std::vector<std::int64_t> positions, const op::Sample* sample) {
  if (is_sampled(sample)) {
    for (std::int64_t& position : positions) {
      position = sample->indices[static_cast<std::size_t>(position)];
    }
  }
  return positions;
}

/// Of a source, all columns of whose rows are made: `transposed` are the elements of the sub-grid in another order.
void gather_rows(const metric::CompareInput& input, const std::vector<std::int64_t>& positions, CertificateData& data) {
  const auto rows = static_cast<std::size_t>(data.port.rows), cols = static_cast<std::size_t>(data.port.cols);
  const bool has_yardsticks = !input.model->exact;
  data.magnitude.resize(has_yardsticks ? positions.size() : 0);
  data.deviation.resize(data.magnitude.size());
  const std::int64_t width = input.port->cols;
  const auto at_a_time = static_cast<std::size_t>(std::max<std::int64_t>(1, input.source->rows_at_a_time()));
  core::parallel_chunks(rows, at_a_time, [&](std::size_t, std::size_t begin, std::size_t end) {
    std::vector<std::int64_t> chosen;
    for (std::size_t r = begin; r < end; ++r) {
      chosen.push_back(positions[r * cols] / width);
    }
    const metric::ExpectedRows made = input.source->picked(chosen);
    for (std::size_t r = begin; r < end; ++r) {
      for (std::size_t c = 0; c < cols; ++c) {
        const std::size_t to = r * cols + c;
        const auto from =
            static_cast<std::size_t>(positions[to] % width) + (r - begin) * static_cast<std::size_t>(width);
        data.expected[to] = made.expected[from];
        if (has_yardsticks) {
          data.magnitude[to] = made.magnitude[from];
          data.deviation[to] = made.deviation[from];
        }
      }
    }
  });
  for (std::size_t i = 0; i < positions.size(); ++i) {
    data.transposed[i] = data.expected[i % rows * cols + i / rows];
  }
}

}  // namespace

SubGrid sub_grid(const op::Port& port) {
  if (port.elements() == 0) {
    return {};
  }
  const std::int64_t all_rows = port.batch * port.rows;
  if (port.cols == 1) {
    return {evenly_spaced(all_rows, kMostStatistics), {0}};
  }
  const std::int64_t columns = std::min(port.cols, kMostOutputs / std::min(all_rows, kMostRows));
  return {evenly_spaced(all_rows, kMostOutputs / columns), evenly_spaced(port.cols, columns)};
}

op::Sample certificate_sample(const op::Port& port, const op::Sample* sample) {
  return {indices_of(positions_of(port, sample), sample)};
}

CertificateData gather(const metric::CompareInput& input) {
  const op::Port& port = *input.port;
  const bool sampled = is_sampled(input.sample);
  const std::vector<std::int64_t> positions = positions_of(port, input.sample);
  CertificateData data;
  data.indices = indices_of(positions, input.sample);
  data.port = {.name = port.name, .role = port.role, .dtype = port.dtype};
  data.port.rows = sampled || positions.empty() ? 1 : static_cast<std::int64_t>(sub_grid(port).rows.size());
  data.port.cols = static_cast<std::int64_t>(positions.size()) / data.port.rows;
  data.port.ld = data.port.cols;
  data.port.batch_stride = data.port.rows * data.port.ld;
  data.expected.resize(positions.size());
  data.magnitude.resize(input.magnitude.empty() ? 0 : positions.size());
  data.deviation.resize(data.magnitude.size());
  data.transposed.resize(sampled ? 0 : positions.size());
  if (input.source != nullptr) {
    gather_rows(input, positions, data);
    return data;
  }
  core::parallel_chunks(positions.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const auto at = static_cast<std::size_t>(positions[i]);
      data.expected[i] = input.expected[at];
      if (!data.magnitude.empty()) {
        data.magnitude[i] = input.magnitude[at];
        data.deviation[i] = input.deviation[at];
      }
      if (!sampled) {
        const std::int64_t inside = positions[i] % (port.rows * port.cols);
        const std::int64_t other = inside % port.rows * port.cols + inside / port.rows;
        data.transposed[i] = input.expected[static_cast<std::size_t>(positions[i] - inside + other)];
      }
    }
  });
  return data;
}

}  // namespace numcheck::tolerance
