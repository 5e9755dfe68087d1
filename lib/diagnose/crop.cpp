#include "diagnose/crop.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/dtype.hpp"
#include "op/gemm.hpp"

namespace numcheck::diagnose {
namespace {

constexpr std::int64_t kLines = 128;  // rows, and columns, of a part

/// The lines of one matrix, ascending: half of them those with the highest counts.
std::vector<std::int64_t> chosen(const std::vector<std::int64_t>& wrong) {
  const auto count = static_cast<std::int64_t>(wrong.size());
  std::vector<std::int64_t> lines;
  if (count <= kLines) {
    lines.resize(wrong.size());
    std::iota(lines.begin(), lines.end(), 0);
    return lines;
  }
  std::vector<std::int64_t> order(wrong.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::int64_t i) { return wrong[static_cast<std::size_t>(i)]; });
  std::vector<bool> taken(wrong.size());
  for (std::int64_t i = 0; i < kLines / 2; ++i) {
    taken[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  }
  for (std::int64_t i = 0; i < kLines / 2; ++i) {
    taken[static_cast<std::size_t>(i * count / (kLines / 2))] = true;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (taken[static_cast<std::size_t>(i)]) {
      lines.push_back(i);
    }
  }
  return lines;
}

/// Where the elements of the part are in a tensor of matrices of `rows` x `cols`.
struct Place {
  std::int64_t matrix = 0, rows = 0, cols = 0;
  const std::vector<std::int64_t>* chosen_rows = nullptr;  ///< null: all
  const std::vector<std::int64_t>* chosen_cols = nullptr;

  template <class Take>
  void each(const Take& take) const {
    const std::int64_t row_count = chosen_rows == nullptr ? rows : std::ssize(*chosen_rows);
    const std::int64_t col_count = chosen_cols == nullptr ? cols : std::ssize(*chosen_cols);
    for (std::int64_t i = 0; i < row_count; ++i) {
      const std::int64_t row = chosen_rows == nullptr ? i : (*chosen_rows)[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < col_count; ++j) {
        const std::int64_t col = chosen_cols == nullptr ? j : (*chosen_cols)[static_cast<std::size_t>(j)];
        take(static_cast<std::size_t>((matrix * rows + row) * cols + col));
      }
    }
  }
};

prepare::SharedDoubles gathered(const core::Buffer<double>& from, const Place& place, std::size_t count) {
  auto values = std::make_shared<core::Buffer<double>>(count);
  std::size_t next = 0;
  place.each([&](std::size_t i) { (*values)[next++] = from[i]; });
  return values;
}

SharedBytes gathered(const core::Buffer<std::byte>& from, const Place& place, std::size_t count, std::size_t width) {
  auto bytes = std::make_shared<core::Buffer<std::byte>>(count * width);
  std::size_t next = 0;
  place.each([&](std::size_t i) {
    std::copy_n(from.data() + i * width, width, bytes->data() + next);
    next += width;
  });
  return bytes;
}

}  // namespace

std::optional<Subject> cropped(const Subject& subject, std::span<const std::uint8_t> is_wrong) {
  if (subject.c.op->name != "gemm") {
    return std::nullopt;
  }
  auto p = op::from_params<op::GemmParams>(subject.c.params);
  const auto matrix_size = static_cast<std::size_t>(p.m * p.n);
  if ((p.m <= kLines && p.n <= kLines) || is_wrong.size() != matrix_size * static_cast<std::size_t>(p.batch)) {
    return std::nullopt;
  }
  // The first matrix that has wrong elements.
  const auto first = std::ranges::find(is_wrong, std::uint8_t{1});
  const std::size_t matrix =
      first == is_wrong.end() ? 0 : static_cast<std::size_t>(first - is_wrong.begin()) / matrix_size;
  std::vector<std::int64_t> in_rows(static_cast<std::size_t>(p.m)), in_cols(static_cast<std::size_t>(p.n));
  for (std::size_t i = 0; i < matrix_size; ++i) {
    in_rows[i / in_cols.size()] += is_wrong[matrix * matrix_size + i];
    in_cols[i % in_cols.size()] += is_wrong[matrix * matrix_size + i];
  }
  const std::vector<std::int64_t> rows = chosen(in_rows), cols = chosen(in_cols);
  Subject part = subject;
  part.outputs.clear();
  const std::vector<op::Port> ports = subject.c.op->ports(subject.c.params, *subject.c.mode);
  p.batch = 1;
  p.m = std::ssize(rows);
  p.n = std::ssize(cols);
  part.c.params = op::to_params(p);
  const std::vector<op::Port> smaller = part.c.op->ports(part.c.params, *part.c.mode);
  for (const op::Port& port : ports) {
    const bool whole_batch = port.batch == 1 && port.role == op::Role::input;
    Place place{whole_batch ? 0 : static_cast<std::int64_t>(matrix), port.rows, port.cols};
    if (port.name == "a") {
      (p.trans_a ? place.chosen_cols : place.chosen_rows) = &rows;
    } else if (port.name == "b") {
      (p.trans_b ? place.chosen_rows : place.chosen_cols) = &cols;
    } else if (port.name == "bias") {
      place.chosen_cols = &cols;
    } else if (port.name == "c" || port.name == "d") {
      place.chosen_rows = &rows;
      place.chosen_cols = &cols;
    } else {
      continue;  // scales are those of the whole; a maximum is of the whole only
    }
    const auto count = static_cast<std::size_t>(op::port_named(smaller, port.name).elements());
    if (port.name == "d") {
      const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
      part.outputs.emplace("d", gathered(*subject.outputs.find("d")->second, place, count, width));
    } else {
      part.inputs.set(std::string(port.name), gathered(*subject.inputs.of(port), place, count));
    }
  }
  return part;
}

}  // namespace numcheck::diagnose
