#include "fake.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "kernels/harness/port_image.hpp"

namespace numcheck::kernels::test {
namespace {

constexpr std::align_val_t kAlignment{256};

double read_element(const op::Port& port, const std::byte* data, std::int64_t b, std::int64_t r, std::int64_t c) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data + harness::element_offset(port, b, r, c),
              static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes));
  return core::decode(bits, port.dtype);
}

void write_element(const op::Port& port, std::byte* data, std::int64_t b, std::int64_t r, std::int64_t c,
                   double value) {
  const std::uint64_t bits = core::encode(value, port.dtype, core::Overflow::saturate);
  std::memcpy(data + harness::element_offset(port, b, r, c), &bits,
              static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes));
}

double round_operand(double value, const OperandRounding& rounding) {
  return core::round_to(value, rounding.dtype, core::Overflow::ieee, rounding.rounding);
}

/// D and its amax in double with rounded operands.
void multiply(const op::Product& product, const FakeBackend& backend, std::span<const PortMemory> ports) {
  const op::GemmParams& p = product.params;
  const PortMemory& a = memory_named(ports, product.a);
  const PortMemory& b = memory_named(ports, product.b);
  const PortMemory& d = memory_named(ports, product.d);
  double scale = p.alpha, of_output = 1;
  for (const PortMemory& port : ports) {
    if (port.port->role == op::Role::scale) {
      const double value = read_element(*port.port, port.data, 0, 0, 0);
      scale *= port.port->of == product.a || port.port->of == product.b ? value : 1;
      of_output *= port.port->of == product.d ? value : 1;
    }
  }
  const auto addend =
      std::ranges::find_if(ports, [&](const auto& m) { return p.beta != 0 && m.port->name == product.c; });
  const auto out = std::ranges::find_if(
      ports, [&](const auto& m) { return m.port->role == op::Role::amax && m.port->of == product.d; });
  // Like atomicMax: the caller must have set it to zero.
  double amax = out == ports.end() ? 0 : read_element(*out->port, out->data, 0, 0, 0);
  for (std::int64_t batch = 0; batch < p.batch; ++batch) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        double sum = 0;
        for (std::int64_t t = 0; t < p.k; ++t) {
          sum +=
              round_operand(read_element(*a.port, a.data, batch, p.trans_a ? t : i, p.trans_a ? i : t), backend.first) *
              round_operand(read_element(*b.port, b.data, batch, p.trans_b ? j : t, p.trans_b ? t : j), backend.second);
        }
        double z = scale * sum;
        if (addend != ports.end()) {
          z += p.beta * read_element(*addend->port, addend->data, batch, i, j);
        }
        if (p.epilogue == "relu") {
          z = std::max(z, 0.0);
        }
        if (p.epilogue == "gelu") {
          z = z / 2 * (1 + std::tanh(0.79788456080286536 * (z + 0.044715 * z * z * z)));
        }
        amax = std::max(amax, std::fabs(z));
        write_element(*d.port, d.data, batch, i, j, z * of_output);
      }
    }
  }
  if (out != ports.end()) {
    write_element(*out->port, out->data, 0, 0, 0, amax);
  }
}

}  // namespace

FakeMemory::~FakeMemory() {
  for (std::byte* pointer : live) {
    ::operator delete(pointer, kAlignment);
  }
}

std::byte* FakeMemory::allocate(std::size_t bytes) {
  if (bytes > capacity || (full_beside_copies && !kept.empty())) {
    throw core::EnvironmentError("not enough device memory");
  }
  auto* pointer = static_cast<std::byte*>(::operator new(bytes, kAlignment));
  std::memset(pointer, 0x5A, bytes);
  live.insert(pointer);
  return pointer;
}

void FakeMemory::release(std::byte* pointer) noexcept {
  live.erase(pointer);
  std::erase(kept, pointer);
  ::operator delete(pointer, kAlignment);
}

void FakeMemory::upload(std::byte* device, std::span<const std::byte> host) {
  std::memcpy(device, host.data(), host.size());
}

void FakeMemory::download(std::span<std::byte> host, const std::byte* device) {
  downloaded += host.size();
  std::memcpy(host.data(), device, host.size());
}

void FakeMemory::fill(std::byte* device, std::uint8_t pattern, std::size_t bytes) {
  if (fills_left == 0) {
    throw core::EnvironmentError("cudaMemsetAsync failed");
  }
  fills_left -= fills_left > 0 ? 1 : 0;
  std::memset(device, pattern, bytes);
}

std::byte* FakeMemory::keep(const std::byte* device, std::size_t bytes) {
  if (!keeps) {
    return nullptr;
  }
  const bool full = std::exchange(full_beside_copies, false);
  std::byte* copy = kept.emplace_back(allocate(bytes));
  ++kept_ever;
  full_beside_copies = full;
  std::memcpy(copy, device, bytes);
  return copy;
}

bool FakeMemory::is_same(const std::byte* a, const std::byte* b, std::size_t bytes) {
  return std::memcmp(a, b, bytes) == 0;
}

void FakeMemory::download_at_sync(std::span<const DeviceRead> reads) {
  for (const DeviceRead& read : reads) {
    undelivered.push_back({read.host, {read.device, read.device + read.host.size()}});
  }
}

void FakeMemory::synchronize() {
  const std::vector<Undelivered> reads = std::exchange(undelivered, {});
  if (dead || sync_errors-- > 0) {
    throw core::EnvironmentError("cudaErrorIllegalAddress");
  }
  for (const Undelivered& read : reads) {
    std::ranges::copy(read.bytes, read.host.begin());
  }
}

Support FakeBackend::supports(const Call& call) {
  seen_inject = call.inject;
  return {refusal.empty(), refusal};
}

std::vector<Algorithm> FakeBackend::algorithms(const Call& call) {
  std::vector<Algorithm> algorithms;
  for (int index = 0; index < algorithm_count; ++index) {
    algorithms.push_back({"fake " + std::to_string(index),
                          {{"id", std::to_string(index)}},
                          workspace_bytes - 300 * static_cast<std::size_t>(index),
                          [this, index, launch = 0, op = call.c->op, params = call.c->params](
                              std::span<const PortMemory> ports, std::byte* workspace) mutable {
                            ++launches;
                            for (const PortMemory& port : ports) {
                              if (const auto product = op::product_behind(*op, params, port.port->name)) {
                                multiply(*product, *this, ports);
                              }
                            }
                            if (misbehave && index == misbehaving_algorithm) {
                              misbehave(ports, workspace, launch);
                            }
                            ++launch;
                            return [] { return 0.25; };
                          }});
    algorithms.back().shown = shown;
  }
  return algorithms;
}

TestCase::TestCase(const op::GemmParams& params, std::string_view mode)
    : TestCase(op::gemm(), op::to_params(params), mode) {}

TestCase::TestCase(const op::Op& op, const op::Params& params, std::string_view mode) {
  c.op = &op;
  c.params = params;
  c.mode = op::find_mode(mode);
  if (c.mode == nullptr) {
    throw std::invalid_argument("no such mode");
  }
  plan::identify(c);
  ports = c.op->ports(c.params, *c.mode);
  for (const op::Port& port : ports) {
    auto& buffer = bytes.emplace(std::string(port.name), port.extent_bytes()).first->second;
    for (std::int64_t b = 0; port.role == op::Role::input && b < port.batch; ++b) {
      for (std::int64_t r = 0; r < port.rows; ++r) {
        for (std::int64_t col = 0; col < port.cols; ++col) {
          write_element(port, buffer.data(), b, r, col, static_cast<double>((3 * b + 5 * r + 7 * col) % 11 - 5));
        }
      }
    }
    if (port.role == op::Role::scale) {
      write_element(port, buffer.data(), 0, 0, 0, 1.0);
    }
  }
  for (const op::Port& port : ports) {
    host.push_back({&port, bytes.find(port.name)->second});
  }
}

op::GemmParams shape(std::int64_t m, std::int64_t n, std::int64_t k) {
  op::GemmParams params;
  params.m = m;
  params.n = n;
  params.k = k;
  return params;
}

const op::Port& TestCase::port(std::string_view name) const {
  return op::port_named(ports, name);
}

double TestCase::output(std::int64_t row, std::int64_t col) const {
  return read_element(port("d"), bytes.find("d")->second.data(), 0, row, col);
}

std::vector<worker::RunReport> TestCase::run(FakeBackend& backend, const worker::ExecuteOptions& options) {
  std::vector<worker::RunReport> reports;
  outcome = harness.run(backend, c, host, options,
                        [&reports](const worker::RunReport& report) { reports.push_back(report); });
  return reports;
}

const PortMemory& memory_named(std::span<const PortMemory> ports, std::string_view name) {
  const auto found = std::ranges::find_if(ports, [name](const PortMemory& p) { return p.port->name == name; });
  if (found == ports.end()) {
    throw std::invalid_argument("no such port");
  }
  return *found;
}

}  // namespace numcheck::kernels::test
