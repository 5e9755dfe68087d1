#include "verdict/decoded_outputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/parallel.hpp"
#include "data/inputs.hpp"
#include "metric/reader.hpp"

namespace numcheck::verdict {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 16;  // elements per task

/// Elements of an output that still hold the poison pattern: all bits set, a NaN in every floating-point format.
std::vector<std::size_t> unwritten_elements(const op::Port& port, std::span<const std::byte> bytes,
                                            std::span<const double> values) {
  metric::CompareInput stored;
  stored.port = &port;
  stored.got = bytes;
  const std::uint64_t poison = (std::uint64_t{1} << (8 * core::dtype_info(port.dtype).storage_bytes)) - 1;
  std::vector<std::vector<std::size_t>> of_chunks((values.size() + kChunk - 1) / kChunk);
  core::parallel_chunks(values.size(), kChunk, [&](std::size_t chunk, std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; ++at) {
      if (std::isnan(values[at]) && metric::bits_at(stored, static_cast<std::int64_t>(at)) == poison) {
        of_chunks[chunk].push_back(at);
      }
    }
  });
  std::vector<std::size_t> found;
  for (const std::vector<std::size_t>& some : of_chunks) {
    found.insert(found.end(), some.begin(), some.end());
  }
  return found;
}

}  // namespace

DecodedOutputs::DecodedOutputs(const prepare::PreparedCase& prepared, std::span<const worker::HostPort> host) {
  for (std::size_t i = 0; i < prepared.ports.size(); ++i) {
    const op::Port& port = prepared.ports[i];
    if (port.role != op::Role::output && port.role != op::Role::amax) {
      continue;
    }
    core::Buffer<double>& values = decoded_.emplace_back(data::load_port(port, host[i].bytes));
    const auto scale = prepared.scale.find(port.name);
    const double factor = scale == prepared.scale.end() ? 1.0 : static_cast<double>(scale->second);
    if (factor != 1.0) {
      core::parallel_chunks(values.size(), kChunk, [&](std::size_t, std::size_t begin, std::size_t end) {
        std::ranges::for_each(values.span().subspan(begin, end - begin), [factor](double& value) { value /= factor; });
      });
    }
    const std::vector<std::size_t>& unwritten =
        unwritten_.emplace_back(unwritten_elements(port, host[i].bytes, values.span()));
    outputs_.push_back({port.name, values.span(), port.dtype, factor, unwritten});
  }
}

}  // namespace numcheck::verdict
