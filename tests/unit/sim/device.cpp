#include "tests/unit/sim/device.hpp"

#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>

#include "core/codec.hpp"

namespace numcheck::testing_sim {
namespace {

constexpr const char* kVariable = "NVIDIA_TF32_OVERRIDE";

/// Byte offset of every logical element, row-major.
std::vector<std::size_t> offsets_of(const op::Port& port) {
  std::vector<std::size_t> offsets;
  for (std::int64_t b = 0; b < port.batch; ++b) {
    for (std::int64_t r = 0; r < port.rows; ++r) {
      for (std::int64_t c = 0; c < port.cols; ++c) {
        offsets.push_back(static_cast<std::size_t>(port.offset_bytes + (b * port.batch_stride + r * port.ld + c) *
                                                                           core::dtype_info(port.dtype).storage_bytes));
      }
    }
  }
  return offsets;
}

}  // namespace

TF32Override::TF32Override(const char* value) : was_set_(std::getenv(kVariable) != nullptr) {
  before_ = was_set_ ? std::getenv(kVariable) : "";
  value == nullptr ? unsetenv(kVariable) : setenv(kVariable, value, 1);
}

TF32Override::~TF32Override() {
  was_set_ ? setenv(kVariable, before_.c_str(), 1) : unsetenv(kVariable);
}

SimDevice::SimDevice(kernels::Backend& backend, op::GemmParams params, const char* mode) : backend_(backend) {
  c.op = &op::gemm();
  c.mode = op::find_mode(mode);
  c.params = op::to_params(params);
  c.backend = "sim";
  if (const auto mistakes = c.op->check(c.params, *c.mode); !mistakes.empty()) {
    throw std::invalid_argument(mistakes.front());
  }
  ports_ = c.op->ports(c.params, *c.mode);
  std::mt19937 random(17);
  std::normal_distribution<double> normal;
  for (const op::Port& port : ports_) {
    std::byte* data = backend_.memory().allocate(port.extent_bytes());
    memory_.push_back({&port, data});
    backend_.memory().fill(data, 0xFF, port.extent_bytes());
    if (port.role == op::Role::input || port.role == op::Role::scale) {
      std::vector<double> values(static_cast<std::size_t>(port.elements()), 1.0);
      for (double& value : values) {
        value = port.role == op::Role::scale ? 1.0 : normal(random);
      }
      set(port.name, values);
    }
  }
}

SimDevice::~SimDevice() {
  for (const kernels::PortMemory& memory : memory_) {
    backend_.memory().release(memory.data);
  }
}

const kernels::PortMemory& SimDevice::memory_of(std::string_view port) const {
  for (const kernels::PortMemory& memory : memory_) {
    if (memory.port->name == port) {
      return memory;
    }
  }
  throw std::invalid_argument(std::string(port));
}

void SimDevice::set(std::string_view port, const std::vector<double>& values) {
  const kernels::PortMemory& memory = memory_of(port);
  const auto offsets = offsets_of(*memory.port);
  const auto width = static_cast<std::size_t>(core::dtype_info(memory.port->dtype).storage_bytes);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::uint64_t word = core::encode(values.at(i), memory.port->dtype);
    std::memcpy(memory.data + offsets[i], &word, width);
  }
}

std::vector<double> SimDevice::get(std::string_view port) const {
  const kernels::PortMemory& memory = memory_of(port);
  const auto width = static_cast<std::size_t>(core::dtype_info(memory.port->dtype).storage_bytes);
  std::vector<double> values;
  for (const std::size_t offset : offsets_of(*memory.port)) {
    std::uint64_t word = 0;
    std::memcpy(&word, memory.data + offset, width);
    values.push_back(core::decode(word, memory.port->dtype));
  }
  return values;
}

std::vector<std::byte> SimDevice::bytes(std::string_view port) const {
  const kernels::PortMemory& memory = memory_of(port);
  return {memory.data, memory.data + memory.port->extent_bytes()};
}

kernels::Call SimDevice::call(const std::string& fault) {
  return {&c, ports_, fault};
}

kernels::Support SimDevice::supports(const std::string& fault) {
  return backend_.supports(call(fault));
}

std::vector<kernels::Algorithm> SimDevice::algorithms(const std::string& fault) {
  return backend_.algorithms(call(fault));
}

std::vector<double> SimDevice::run(const std::string& fault, std::size_t algorithm) {
  const kernels::PortMemory& d = memory_of("d");
  backend_.memory().fill(d.data, 0xFF, d.port->extent_bytes());
  static_cast<void>(algorithms(fault).at(algorithm).launch(memory_, nullptr));
  return get("d");
}

}  // namespace numcheck::testing_sim
