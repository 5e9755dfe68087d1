// A case on a simulated device, for tests: ports in device memory, filled and read back as doubles.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/sim/sim.hpp"
#include "op/gemm.hpp"

namespace numcheck::testing_sim {

/// Sets NVIDIA_TF32_OVERRIDE while it lives; null unsets it.
class TF32Override {
 public:
  explicit TF32Override(const char* value);
  ~TF32Override();
  TF32Override(const TF32Override&) = delete;
  TF32Override& operator=(const TF32Override&) = delete;

 private:
  bool was_set_;
  std::string before_;
};

/// One GEMM on a backend. Inputs are N(0,1) rounded to their formats unless set; scales are 1.
class SimDevice {
 public:
  SimDevice(kernels::Backend& backend, op::GemmParams params, const char* mode);
  ~SimDevice();
  SimDevice(const SimDevice&) = delete;
  SimDevice& operator=(const SimDevice&) = delete;

  /// Logical elements of a port, row-major.
  void set(std::string_view port, const std::vector<double>& values);
  [[nodiscard]] std::vector<double> get(std::string_view port) const;
  [[nodiscard]] std::vector<std::byte> bytes(std::string_view port) const;

  [[nodiscard]] kernels::Support supports(const std::string& fault = {});
  [[nodiscard]] std::vector<kernels::Algorithm> algorithms(const std::string& fault = {});
  /// Fills D with poison, launches an algorithm and returns D.
  std::vector<double> run(const std::string& fault = {}, std::size_t algorithm = 0);

  plan::Case c;

 private:
  [[nodiscard]] const kernels::PortMemory& memory_of(std::string_view port) const;
  [[nodiscard]] kernels::Call call(const std::string& fault);

  kernels::Backend& backend_;
  std::vector<op::Port> ports_;
  std::vector<kernels::PortMemory> memory_;
};

}  // namespace numcheck::testing_sim
