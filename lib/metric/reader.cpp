#include "metric/reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "core/codec.hpp"
#include "metric/worst_list.hpp"

namespace numcheck::metric {
namespace {

/// Byte offset of an element, by flat logical index.
std::size_t byte_offset(const op::Port& port, std::int64_t index) {
  const std::int64_t row = index / port.cols;
  const std::int64_t element =
      (row / port.rows) * port.batch_stride + (row % port.rows) * port.ld + (index - row * port.cols);
  return static_cast<std::size_t>(port.offset_bytes + element * core::dtype_info(port.dtype).storage_bytes);
}

double infinite(double sign) {
  return std::copysign(std::numeric_limits<double>::infinity(), sign);
}

}  // namespace

std::uint64_t bits_at(const CompareInput& input, std::int64_t flat_index) {
  const auto bytes = static_cast<std::size_t>(core::dtype_info(input.port->dtype).storage_bytes);
  std::uint64_t bits = 0;
  std::memcpy(&bits, input.got.data() + byte_offset(*input.port, flat_index), bytes);
  return bits;
}

void bits_from(const op::Port& port, std::span<const std::byte> bytes, std::int64_t first,
               std::span<std::uint64_t> bits) {
  const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  for (std::size_t done = 0; done < bits.size();) {
    const std::int64_t index = first + static_cast<std::int64_t>(done);
    const std::size_t run = std::min(bits.size() - done, static_cast<std::size_t>(port.cols - index % port.cols));
    const std::byte* from = bytes.data() + byte_offset(port, index);
    for (std::size_t i = 0; i < run; ++i, from += width) {
      std::uint64_t pattern = 0;
      std::memcpy(&pattern, from, width);
      bits[done + i] = pattern;
    }
    done += run;
  }
}

void decode_from(const op::Port& port, std::span<const std::byte> bytes, std::int64_t first, std::span<double> values) {
  const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const bool dense = port.is_dense();
  for (std::size_t done = 0; done < values.size();) {
    const std::int64_t index = first + static_cast<std::int64_t>(done);
    const auto left_in_row = static_cast<std::size_t>(port.cols - index % port.cols);
    const std::size_t run = dense ? values.size() : std::min(values.size() - done, left_in_row);
    core::decode(bytes.subspan(byte_offset(port, index), run * width), port.dtype, values.subspan(done, run));
    done += run;
  }
}

std::int64_t SegmentReader::flat_index(std::int64_t element) const {
  return input_.sample != nullptr && !input_.sample->all() ? input_.sample->indices[static_cast<std::size_t>(element)]
                                                           : element;
}

void SegmentReader::decode(std::int64_t first, std::size_t count) {
  const op::Port& port = *input_.port;
  const auto bytes = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const std::span<double> out(got_.data(), count);
  if (input_.sample != nullptr && !input_.sample->all()) {
    std::array<std::byte, kSegment * sizeof(float)> gathered;
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t index = flat_index(first + static_cast<std::int64_t>(i));
      std::memcpy(gathered.data() + i * bytes, input_.got.data() + byte_offset(port, index), bytes);
    }
    core::decode(std::span<const std::byte>(gathered).first(count * bytes), port.dtype, out);
    return;
  }
  decode_from(port, input_.got, first, out);
}

void SegmentReader::copy(std::int64_t first, std::size_t count, std::size_t padded) {
  const auto begin = static_cast<std::size_t>(first - origin_);
  const auto scaled = [this](double y) { return std::clamp(y * setup_.output_scale, -setup_.clamp, setup_.clamp); };
  for (std::size_t i = 0; i < count; ++i) {
    expected_[i] = scaled(rows_.expected[begin + i]);
    magnitude_[i] = rows_.magnitude.empty() ? 0 : rows_.magnitude[begin + i];
    deviation_[i] = rows_.magnitude.empty() ? 0 : rows_.deviation[begin + i];
  }
  if (!rows_.unrounded.empty()) {
    std::ranges::transform(rows_.unrounded.subspan(begin, count), unrounded_.begin(), scaled);
  }
  if (rows_.terms.empty()) {
    std::copy_n(magnitude_.begin(), count, terms_.begin());
  } else {
    std::ranges::copy(rows_.terms.subspan(begin, count), terms_.begin());
  }
  std::fill(terms_.begin() + count, terms_.begin() + padded, 0.0F);
  std::fill(got_.begin() + count, got_.begin() + padded, 0.0);
  std::fill(expected_.begin() + count, expected_.begin() + padded, 0.0);
  std::fill(unrounded_.begin() + count, unrounded_.begin() + padded, 0.0);
  std::fill(magnitude_.begin() + count, magnitude_.begin() + padded, 0.0F);
  std::fill(deviation_.begin() + count, deviation_.begin() + padded, 0.0F);
}

void SegmentReader::use_copies(SegmentView& view) const {
  view.expected = expected_.data();
  view.magnitude = magnitude_.data();
  view.deviation = deviation_.data();
  view.terms = terms_.data();
  view.unrounded = rows_.unrounded.empty() ? nullptr : unrounded_.data();
  view.ahead = 0;
}

void SegmentReader::prefetch(std::int64_t next, std::size_t count) const {
  if (input_.sample != nullptr && !input_.sample->all()) {
    return;
  }
  constexpr std::size_t kLine = 64;
  const std::byte* const raw = input_.got.data() + byte_offset(*input_.port, next);
  const auto bytes = static_cast<std::size_t>(core::dtype_info(input_.port->dtype).storage_bytes);
  for (std::size_t byte = 0; byte < count * bytes; byte += kLine) {
    __builtin_prefetch(raw + byte, 0, 2);
  }
}

SegmentView SegmentReader::read(std::int64_t first, std::size_t count, std::int64_t next) {
  const std::size_t padded = (count + kLanes - 1) / kLanes * kLanes;
  decode(first, count);
  SegmentView view{};
  view.got = got_.data();
  view.size = padded;
  view.position = first;
  if (input_.sample != nullptr && !input_.sample->all()) {
    view.positions = input_.sample->indices.data() + first;
  }
  if (padded == count && setup_.output_scale == 1 && std::isinf(setup_.clamp) && !rows_.magnitude.empty()) {
    const std::int64_t at = first - origin_;
    view.expected = rows_.expected.data() + at;
    view.magnitude = rows_.magnitude.data() + at;
    view.deviation = rows_.deviation.data() + at;
    view.terms = (rows_.terms.empty() ? rows_.magnitude : rows_.terms).data() + at;
    view.unrounded = rows_.unrounded.empty() ? nullptr : rows_.unrounded.data() + at;
    if (next - origin_ < static_cast<std::int64_t>(rows_.expected.size())) {
      view.ahead = next - first;
      prefetch(next, count);
    }
  } else {
    copy(first, count, padded);
    use_copies(view);
    specials_.padding += padded - count;
  }
  return view;
}

SegmentView SegmentReader::without_specials(const SegmentView& view, std::int64_t first, std::size_t count) {
  SegmentView out = view;
  if (view.expected != expected_.data()) {
    copy(first, count, view.size);
    use_copies(out);
  }
  const std::uint64_t before = specials_.left_out;
  remove_specials(first, count);
  std::fill(unjudged_.begin() + count, unjudged_.begin() + view.size, std::uint8_t{0});
  out.unjudged = specials_.left_out == before ? nullptr : unjudged_.data();
  return out;
}

void SegmentReader::load(std::int64_t first, std::size_t count) {
  first_ = first;
  decode(first, count);
  copy(first, count, count);
}

ComparedElement SegmentReader::element(std::size_t offset) const {
  ComparedElement element;
  element.index = flat_index(first_ + static_cast<std::int64_t>(offset));
  const Finding finding = classify(offset);
  element.finite = finding == Finding::regular;
  element.mismatch = finding == Finding::mismatch;
  element.unwritten = is_unwritten(offset, element.index);
  if (element.finite) {
    element.error = got_[offset] - expected_[offset];
    element.bound = bound_at(expected_[offset], static_cast<double>(magnitude_[offset]));
  }
  return element;
}

double SegmentReader::bound_at(double y, double a) const {
  const double bound = unrounded_bound_at(y, a);
  return bound + core::ulp(std::min(std::abs(y) + bound, setup_.format.overflow_threshold), input_.port->dtype) / 2;
}

double SegmentReader::unrounded_bound_at(double y, double a) const {
  const ModelConstants& model = setup_.model;
  return model.bound_magnitude * a * model.scale + model.bound_value * std::abs(y) + model.bound_absolute;
}

void SegmentReader::count_removed(double got, double y, bool agrees) {
  const double rounded = std::abs(y) >= setup_.format.overflow_threshold ? infinite(y) : y;
  const bool both_nan = std::isnan(got) && std::isnan(rounded);
  const bool equal = got == rounded;
  specials_.plan += equal ? 0 : 1;
  specials_.inexact += equal || both_nan || agrees ? 0 : 1;
}

bool SegmentReader::is_outside(std::int64_t index) const {
  const auto next = std::ranges::upper_bound(input_.outside, index, {}, &op::OutputValues::Range::begin);
  return next != input_.outside.begin() && index < std::prev(next)->end;
}

bool SegmentReader::saturates(std::size_t i) const {
  if (std::abs(expected_[i]) != setup_.clamp ||
      !(static_cast<double>(magnitude_[i]) >= setup_.undetermined_magnitude)) {
    return false;
  }
  const double y = std::abs(rows_.expected[static_cast<std::size_t>(first_ - origin_) + i] * setup_.output_scale);
  return y - bound_at(y, static_cast<double>(magnitude_[i])) >= setup_.clamp;
}

/// Such elements still have a bound, in which an infinite A stands for a large one. They are judged where V asks something and B
/// does not.
bool SegmentReader::count_unjudged(std::size_t i) {
  constexpr double kMaxMagnitude = 1e100;  // as in gate_exact.hpp
  const auto a = static_cast<double>(magnitude_[i]);
  const bool is_compared = std::abs(expected_[i]) < setup_.format.overflow_threshold;
  const double held = is_compared ? std::min(a, kMaxMagnitude) : a;
  if (held < setup_.undetermined_magnitude || saturates(i) || (is_compared && spread_asks(i, held))) {
    return false;
  }
  const bool outside = is_outside(flat_index(first_ + static_cast<std::int64_t>(i)));
  ++(outside ? specials_.outside : std::isinf(a) ? specials_.unknown : specials_.undetermined);
  return true;
}

double SegmentReader::most_by_spread(std::size_t i, double a) const {
  const ModelConstants& model = setup_.model;
  const double y = expected_[i], scaled = a * model.scale, a2 = scaled * scaled;
  const double given = static_cast<double>(deviation_[i]) * model.scale;
  const double root = model.narrowed ? given : std::min(given, scaled), s2 = root * root;
  const double coherent = a2 > 0 ? y * y / a2 * y * y : 0;
  return model.lambda_kappa * std::sqrt(model.var_second * s2 + model.var_magnitude * a2 + model.var_value * y * y +
                                        model.var_absolute + model.var_coherent * coherent);
}

bool SegmentReader::spread_asks(std::size_t i, double a) const {
  return most_by_spread(i, a) < setup_.undetermined_spread;
}

void SegmentReader::prepare_regular(std::size_t i) {
  if (!rows_.unrounded.empty() && !std::isfinite(unrounded_[i])) {
    unrounded_[i] = got_[i];  // no total error if the unrounded inputs overflow
  }
  if (setup_.exact && !(magnitude_[i] + deviation_[i] >= 0)) {
    magnitude_[i] = deviation_[i] = 0;  // bits are compared, without a yardstick
  }
  unjudged_[i] = count_unjudged(i) ? 1 : 0;
  specials_.left_out += unjudged_[i];
}

void SegmentReader::remove_specials(std::int64_t first, std::size_t count) {
  first_ = first;
  for (std::size_t i = 0; i < count; ++i) {
    const Finding finding = classify(i);
    if (finding == Finding::regular) {
      prepare_regular(i);
      continue;
    }
    const std::int64_t index = flat_index(first + static_cast<std::int64_t>(i));
    ++specials_.removed;
    unjudged_[i] = 0;
    if (finding == Finding::agrees && std::isfinite(expected_[i])) {
      (void)count_unjudged(i);
    }
    specials_.unknown += finding == Finding::unknown ? 1 : 0;
    if (finding == Finding::order_dependent) {
      ++(is_outside(index) ? specials_.outside : specials_.order_dependent);
    }
    specials_.poison += is_unwritten(i, index) ? 1 : 0;
    count_removed(got_[i], expected_[i], finding == Finding::agrees || finding == Finding::unknown);
    if (finding == Finding::mismatch) {
      ++specials_.mismatches;
      insert_worst(specials_.worst, std::numeric_limits<double>::infinity(), index, got_[i], expected_[i]);
    }
    got_[i] = expected_[i] = unrounded_[i] = 0;
    magnitude_[i] = deviation_[i] = terms_[i] = 0;
  }
}

}  // namespace numcheck::metric
