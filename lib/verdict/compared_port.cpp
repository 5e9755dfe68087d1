#include "verdict/compared_port.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "data/block_scales.hpp"
#include "data/inputs.hpp"
#include "metric/reader.hpp"

namespace numcheck::verdict {
namespace {

constexpr std::int64_t kElementsPerTask = 1 << 15;

std::size_t index_of(const prepare::PreparedCase& prepared, std::string_view name) {
  return static_cast<std::size_t>(&op::port_named(prepared.ports, name) - prepared.ports.data());
}

/// The port's layout as dense FP32.
op::Port as_fp32(const op::Port& stored) {
  op::Port port = stored;
  port.dtype = core::Dtype::fp32;
  port.ld = port.cols;
  port.batch_stride = port.rows * port.cols;
  port.offset_bytes = 0;
  port.scaled_by = {};
  return port;
}

/// The pattern that outputs hold before a run: all bits set, in FP32 as in codes.
float poison() {
  float value = 0;
  std::memset(&value, 0xFF, sizeof value);
  return value;
}

std::size_t divide_up(std::int64_t value, std::int64_t by) {
  return static_cast<std::size_t>((value + by - 1) / by);
}

/// Errors in ulps of the codes, collected as in metric::Statistics.
struct Steps {
  decltype(metric::Statistics::ulp_histogram) histogram{};
  double largest = 0;
  double sum = 0;
  std::uint64_t count = 0;

  void add(double steps) {
    const double last = static_cast<double>(histogram.size() - 1);
    const double bin = steps == 0 ? 0 : std::clamp(2 + std::ceil(std::log2(steps)), 1.0, last);
    ++histogram.at(static_cast<std::size_t>(bin));
    largest = std::max(largest, steps);
    sum += steps;
    ++count;
  }
  void merge(const Steps& other) {
    std::ranges::transform(histogram, other.histogram, histogram.begin(), std::plus<>());
    largest = std::max(largest, other.largest);
    sum += other.sum;
    count += other.count;
  }
};

}  // namespace

const worker::OutputDigest& output_named(const worker::RunReport& run, std::string_view port) {
  const auto found = std::ranges::find(run.outputs, port, &worker::OutputDigest::port);
  if (found == run.outputs.end()) {
    throw core::InternalError("the worker reported no digest for output " + std::string(port));
  }
  return *found;
}

ComparedPort::ComparedPort(const prepare::PreparedCase& prepared, std::span<const worker::HostPort> host,
                           std::size_t index, const worker::RunReport& run)
    : stored_(prepared.ports[index]),
      stored_bytes_(host[index].bytes),
      port_(stored_),
      bytes_(stored_bytes_),
      digest_(output_named(run, stored_.name).digest.hex()) {
  if (!stored_.scaled_by.empty()) {
    const std::size_t scales = index_of(prepared, stored_.scaled_by);
    scales_ = data::load_port(prepared.ports[scales], host[scales].bytes);
    digest_ += output_named(run, stored_.scaled_by).digest.hex();
  }
  if (!stored_.scaled_by.empty() || stored_.dtype == core::Dtype::e8m0) {
    convert();
  }
}

void ComparedPort::convert() {
  converted_ = true;
  codes_ = data::load_port(stored_, stored_bytes_);
  values_ = core::Buffer<float>(codes_.size());
  const std::uint64_t unwritten = (std::uint64_t{1} << (8 * core::dtype_info(stored_.dtype).storage_bytes)) - 1;
  core::parallel_chunks(
      codes_.size(), std::size_t{kElementsPerTask}, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
          const bool is_poison =
              std::isnan(codes_[i]) && bits_at(i) == unwritten;  // all bits set is a NaN in all of these formats
          // Casts to codes with scales of blocks saturate: an infinite code is no number of theirs, and any product with a scale
          // of 2^127 is infinite.
          values_[i] = is_poison               ? poison()
                       : std::isinf(codes_[i]) ? std::numeric_limits<float>::quiet_NaN()
                                               : static_cast<float>(codes_[i] * scale_of(i));
        }
      });
  port_ = as_fp32(stored_);
  bytes_ = std::as_bytes(values_.span());
}

std::uint64_t ComparedPort::bits_at(std::size_t flat) const {
  metric::CompareInput stored;
  stored.port = &stored_;
  stored.got = stored_bytes_;
  return metric::bits_at(stored, static_cast<std::int64_t>(flat));
}

void ComparedPort::bits_from(std::size_t first, std::span<std::uint64_t> bits) const {
  metric::bits_from(stored_, stored_bytes_, static_cast<std::int64_t>(first), bits);
}

double ComparedPort::scale_of(std::size_t flat) const {
  if (scales_.empty()) {
    return 1;
  }
  return data::block_scale(stored_, scales_.span(), flat);
}

double ComparedPort::steps_between(std::size_t flat, double got, double expected) const {
  if (got == expected) {
    return 0;
  }
  if (stored_.dtype == core::Dtype::e8m0) {
    return std::fabs(std::log2(got) - std::log2(expected));
  }
  const double scale = scale_of(flat);
  const double code = std::min(std::fabs(expected / scale), core::dtype_info(stored_.dtype).max_finite);
  return std::fabs(got - expected) / (core::ulp(code, stored_.dtype) * scale);
}

void ComparedPort::measure_in_code_ulps(std::span<const double> expected, metric::Statistics& statistics) const {
  if (!converted_) {
    return;
  }
  std::vector<Steps> parts(divide_up(static_cast<std::int64_t>(expected.size()), kElementsPerTask));
  core::parallel_chunks(expected.size(), std::size_t{kElementsPerTask},
                        [&](std::size_t part, std::size_t begin, std::size_t end) {
                          for (std::size_t i = begin; i < end; ++i) {
                            const double got = static_cast<double>(values_[i]);
                            const float wanted = static_cast<float>(expected[i]);
                            if (std::isfinite(got) && std::isfinite(wanted)) {
                              parts[part].add(steps_between(i, got, expected[i]));
                            }
                          }
                        });
  Steps all;
  std::ranges::for_each(parts, [&all](const Steps& part) { all.merge(part); });
  statistics.ulp_histogram = all.histogram;
  statistics.max_ulp = all.largest;
  statistics.max_ulp_at_rms.reset();  // scales differ
  statistics.mean_ulp = all.count == 0 ? 0 : all.sum / static_cast<double>(all.count);
  for (metric::Worst& worst : statistics.worst) {
    const auto flat = static_cast<std::size_t>(worst.index);
    worst.got_bits = bits_at(flat);
    worst.ulps = steps_between(flat, worst.got, worst.expected);
  }
}

}  // namespace numcheck::verdict
