#include "kernels/harness/memory_fault.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/harness/output_image.hpp"
#include "kernels/harness/port_image.hpp"

namespace numcheck::kernels::harness {
namespace {

constexpr std::int64_t kTile = 64;

/// Where a fault is planted.
struct Planting {
  DeviceMemory& memory;
  std::span<const PortMemory> ports;
  const PortMemory* output;
  int repeat;
  std::byte* workspace_end;
};

const PortMemory* first_port(std::span<const PortMemory> ports, op::Role role) {
  const auto found = std::ranges::find_if(
      ports, [role](const PortMemory& s) { return s.port->role == role && s.port->elements() != 0; });
  return found == ports.end() ? nullptr : &*found;
}

/// The first output that is not only an earlier pass's, such as a mask of random bits, of which no one knows the right ones.
const PortMemory* main_output(std::span<const PortMemory> ports) {
  const auto found = std::ranges::find_if(ports, [](const PortMemory& s) {
    return s.port->role == op::Role::output && !s.port->passed_on && s.port->elements() != 0;
  });
  return found == ports.end() ? first_port(ports, op::Role::output) : &*found;
}

/// The 64x64 tile in the middle of the first matrix, clipped at its borders.
struct Tile {
  explicit Tile(const op::Port& port)
      : row(port.rows / 2 / kTile * kTile),
        col(port.cols / 2 / kTile * kTile),
        row_end(std::min(row + kTile, port.rows)),
        col_end(std::min(col + kTile, port.cols)) {}
  std::int64_t row, col, row_end, col_end;
};

/// Flips the top fraction bit of the largest finite element: an error of at least 25 % where no cancellation hides it.
void flip_bit(const Planting& p) {
  Image image(p.memory, *p.output);
  const op::Port& port = image.port();
  std::int64_t row = 0, col = 0;
  double largest = -1;
  for (std::int64_t r = 0; r < port.rows; ++r) {
    for (std::int64_t c = 0; c < port.cols; ++c) {
      const double value = std::fabs(core::decode(image.bits(r, c), port.dtype));
      if (std::isfinite(value) && value > largest) {
        largest = value;
        row = r;
        col = c;
      }
    }
  }
  image.set_bits(row, col, image.bits(row, col) ^ (1ULL << (core::dtype_info(port.dtype).fraction_bits - 1)));
  image.write_back();
}

/// The element of the middle row with the largest finite magnitude.
struct Element {
  std::int64_t row = 0, col = 0;
  std::uint64_t bits = 0;
  double value = 0;
};

Element largest_of_middle_row(Image& image) {
  const op::Port& port = image.port();
  Element largest{.row = port.rows / 2, .bits = image.bits(port.rows / 2, 0)};
  for (std::int64_t col = 0; col < port.cols; ++col) {
    const std::uint64_t bits = image.bits(largest.row, col);
    const double value = core::decode(bits, port.dtype);
    if (std::isfinite(value) && std::fabs(value) > std::fabs(largest.value)) {
      largest = {largest.row, col, bits, value};
    }
  }
  return largest;
}

/// Replaces its bits by change(image, element).
template <class Change>
void change_largest(const Planting& p, Change change) {
  Image image(p.memory, *p.output);
  const Element largest = largest_of_middle_row(image);
  image.set_bits(largest.row, largest.col, change(image, largest));
  image.write_back();
}

std::uint64_t encoded(Image& image, double value) {
  return core::encode(value, image.port().dtype);
}

void write_infinity(const Planting& p) {
  change_largest(p,
                 [](Image& image, const Element&) { return encoded(image, std::numeric_limits<double>::infinity()); });
}
void write_zero(const Planting& p) {
  change_largest(p, [](Image& image, const Element&) { return encoded(image, 0); });
}
void negate_element(const Planting& p) {
  change_largest(p, [](Image& image, const Element& largest) { return encoded(image, -largest.value); });
}

/// The next element on its right, or from the row's beginning, that differs.
void copy_neighbour(const Planting& p) {
  change_largest(p, [](Image& image, const Element& largest) {
    const std::int64_t columns = image.port().cols;
    for (std::int64_t step = 1; step < columns; ++step) {
      const std::uint64_t bits = image.bits(largest.row, (largest.col + step) % columns);
      if (bits != largest.bits) {
        return bits;
      }
    }
    return largest.bits;
  });
}

/// The tile gets the values of the elements opposite it in the matrix; a single element becomes zero.
void make_stale_tile(const Planting& p) {
  Image image(p.memory, *p.output);
  Image before(p.memory, *p.output);
  const op::Port& port = image.port();
  const Tile tile(port);
  for (std::int64_t r = tile.row; r < tile.row_end; ++r) {
    for (std::int64_t c = tile.col; c < tile.col_end; ++c) {
      const bool alone = port.rows == 1 && port.cols == 1;
      image.set_bits(r, c, alone ? 0 : before.bits(port.rows - 1 - r, port.cols - 1 - c));
    }
  }
  image.write_back();
}

void leave_tile_unwritten(const Planting& p) {
  Image image(p.memory, *p.output);
  const Tile tile(image.port());
  for (std::int64_t r = tile.row; r < tile.row_end; ++r) {
    std::memset(image.at(r, tile.col), kPoisonByte,
                static_cast<std::size_t>(tile.col_end - tile.col) * image.element_bytes());
  }
  image.write_back();
}

void write_past_end(const Planting& p) {
  constexpr std::array<std::byte, 8> kZeros{};
  const auto size = static_cast<std::size_t>(core::dtype_info(p.output->port->dtype).storage_bytes);
  p.memory.upload(p.output->data + p.output->port->extent_bytes(), std::span(kZeros).first(size));
}

void write_nan(const Planting& p) {
  Image image(p.memory, *p.output);
  const op::Port& port = image.port();
  image.set_bits(port.rows / 2, port.cols / 2, core::encode(std::numeric_limits<double>::quiet_NaN(), port.dtype));
  image.write_back();
}

void race(const Planting& p) {
  if (p.repeat == 0) {
    return;
  }
  Image image(p.memory, *p.output);
  const std::int64_t row = image.port().rows / 2, col = image.port().cols / 2;
  image.set_bits(row, col, image.bits(row, col) ^ 1U);
  image.write_back();
}

/// Swaps rows 0 and rows/2; in a single row, the first and the middle element.
void swap_rows(const Planting& p) {
  Image image(p.memory, *p.output);
  const op::Port& port = image.port();
  const bool by_row = port.rows > 1;
  const auto bytes = (by_row ? static_cast<std::size_t>(port.cols) : 1) * image.element_bytes();
  std::byte* other = by_row ? image.at(port.rows / 2, 0) : image.at(0, port.cols / 2);
  std::swap_ranges(image.at(0, 0), image.at(0, 0) + bytes, other);
  image.write_back();
}

/// Every element x of the output becomes change(x).
template <class Change>
void change_all(const Planting& p, Change change) {
  Image image(p.memory, *p.output);
  const op::Port& port = image.port();
  for (std::int64_t batch = 0; batch < port.batch; ++batch) {
    for (std::int64_t row = 0; row < port.rows; ++row) {
      for (std::int64_t col = 0; col < port.cols; ++col) {
        const std::uint64_t bits = image.bits(row, col, batch);
        image.set_bits(row, col, core::encode(change(core::decode(bits, port.dtype)), port.dtype), batch);
      }
    }
  }
  image.write_back();
}

void make_all_nan(const Planting& p) {
  change_all(p, [](double) { return std::numeric_limits<double>::quiet_NaN(); });
}
void make_all_seven(const Planting& p) {
  change_all(p, [](double) { return 7.0; });
}
void make_all_zero(const Planting& p) {
  change_all(p, [](double) { return 0.0; });
}
void flip_signs(const Planting& p) {
  change_all(p, [](double x) { return -x; });
}

/// Every element x with bits b gets the bits change(x, b).
template <class Change>
void change_bits(const Planting& p, Change change) {
  Image image(p.memory, *p.output);
  const op::Port& port = image.port();
  for (std::int64_t row = 0; row < port.batch * port.rows; ++row) {
    for (std::int64_t col = 0; col < port.cols; ++col) {
      const std::uint64_t bits = image.bits(row % port.rows, col, row / port.rows);
      image.set_bits(row % port.rows, col, change(core::decode(bits, port.dtype), bits), row / port.rows);
    }
  }
  image.write_back();
}

void negate_zeros(const Planting& p) {
  const core::DtypeInfo& format = core::dtype_info(p.output->port->dtype);
  const std::uint64_t sign = core::is_integer(format.dtype) ? 0 : 1ULL << (8 * format.storage_bytes - 1);
  change_bits(p, [sign](double x, std::uint64_t bits) { return x == 0 ? bits ^ sign : bits; });
}

/// FP8's NaN have no payload.
void change_payloads(const Planting& p) {
  const std::uint64_t lowest = core::dtype_info(p.output->port->dtype).storage_bytes > 1 ? 1 : 0;
  change_bits(p, [lowest](double x, std::uint64_t bits) { return std::isnan(x) ? bits ^ lowest : bits; });
}

void overwrite_input(const Planting& p) {
  const PortMemory& input = *first_port(p.ports, op::Role::input);
  const std::size_t last = element_offset(*input.port, 0, input.port->rows - 1, input.port->cols - 1);
  std::array<std::byte, 1> byte{};
  p.memory.download(byte, input.data + last);
  byte[0] ^= std::byte{1};
  p.memory.upload(input.data + last, byte);
}

void overrun_workspace(const Planting& p) {
  constexpr std::array<std::byte, 1> kZero{};
  p.memory.upload(p.workspace_end, kZero);
}

[[noreturn]] void refuse_late(const Planting&) {
  throw core::Error(core::ExitCode::environment, "late_refusal: the library refuses the case after it has accepted it");
}

struct Fault {
  FaultInfo info;
  void (*plant)(const Planting&);
};

constexpr std::array kFaults = {
    Fault{{"bit_flip", "the top fraction bit of the largest output element is flipped"}, &flip_bit},
    Fault{{"stale_tile", "one 64x64 tile of the output holds values of other elements"}, &make_stale_tile},
    Fault{{"unwritten_tile", "one 64x64 tile of the output is not written"}, &leave_tile_unwritten},
    Fault{{"write_past_end", "one element is written after the end of the output"}, &write_past_end},
    Fault{{"nan_written", "one output element is NaN"}, &write_nan},
    Fault{{"inf_written", "the largest element of the output's middle row is infinite"}, &write_infinity},
    Fault{{"element_zero", "the largest element of the output's middle row is 0"}, &write_zero},
    Fault{{"element_negated", "the largest element of the output's middle row has the opposite sign"}, &negate_element},
    Fault{{"neighbour_copied", "the largest element of the output's middle row holds the value of another beside it"},
          &copy_neighbour},
    Fault{{"race", "the lowest bit of one output element differs from the second run on"}, &race},
    Fault{{"swapped_rows", "two rows of the output are swapped"}, &swap_rows},
    Fault{{"all_nan", "every output element is NaN"}, &make_all_nan},
    Fault{{"all_seven", "every output element is 7"}, &make_all_seven},
    Fault{{"all_zero", "every output element is 0"}, &make_all_zero},
    Fault{{"signs_flipped", "every output element has the opposite sign"}, &flip_signs},
    Fault{{"negative_zero", "every zero of the output has the opposite sign"}, &negate_zeros},
    Fault{{"nan_payload", "every NaN of a 16- or 32-bit output has another payload"}, &change_payloads},
    Fault{{"input_overwritten", "one bit of the first input is changed"}, &overwrite_input},
    Fault{{"workspace_overrun", "one byte is written after the end of the workspace"}, &overrun_workspace},
    Fault{{"late_refusal", "the case is accepted, and then ends in an error"}, &refuse_late},
};

const Fault* find_fault(std::string_view name) noexcept {
  const auto* found = std::ranges::find_if(kFaults, [name](const Fault& f) { return f.info.name == name; });
  return found == kFaults.end() ? nullptr : found;
}

}  // namespace

std::span<const FaultInfo> harness_faults() noexcept {
  static constexpr auto kInfos = [] {
    std::array<FaultInfo, kFaults.size()> infos;
    std::ranges::transform(kFaults, infos.begin(), &Fault::info);
    return infos;
  }();
  return kInfos;
}

bool is_memory_fault(std::string_view name) noexcept {
  return find_fault(name) != nullptr;
}

std::string memory_fault_obstacle(std::string_view name, std::span<const PortMemory> ports) {
  const auto lacks = [ports](op::Role role) { return first_port(ports, role) == nullptr; };
  if (lacks(op::Role::output)) {
    return "the fault " + std::string(name) + " needs an output with elements";
  }
  if (name == "input_overwritten" && lacks(op::Role::input)) {
    return "the fault input_overwritten needs an input with elements";
  }
  return {};
}

void plant_memory_fault(std::string_view name, int repeat, DeviceMemory& memory, std::span<const PortMemory> ports,
                        std::byte* workspace_end) {
  const Fault* fault = find_fault(name);
  if (fault == nullptr) {
    throw core::InternalError("the harness has no fault named " + std::string(name));
  }
  fault->plant({memory, ports, main_output(ports), repeat, workspace_end});
}

}  // namespace numcheck::kernels::harness
