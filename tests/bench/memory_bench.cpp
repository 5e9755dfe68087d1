// Bandwidth of the memory-bound ops on a GPU: memory_bench [--te-lib PATH] [--check] [MIB] [FILTER].
// For every op, mode and backend: bytes read and written by one launch, over the shortest of 20 launches, compared with
// the device's own copy in the same process. MIB: size of the main input (256). --check: our own kernels of the forward
// ops must reach 85 % of the copy in FP32 and 75 % in BF16, and take at most 5 % longer than TransformerEngine's (as two
// measurements of one kernel may differ); otherwise the exit code is 1.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <nlohmann/json.hpp>

#include "app/catalog.hpp"
#include "core/codec.hpp"
#include "kernels/loader/backend_set.hpp"
#include "plan/case.hpp"

namespace {

using namespace numcheck;
using nlohmann::json;

constexpr int kLaunches = 20;

struct Row {
  const char* op;
  json params;
  std::vector<const char*> modes;
  const char* variant = "";  ///< of an op that has several rows

  [[nodiscard]] std::string name() const { return op + std::string(variant); }
};

/// Rows of the main input that make `mib` MiB in FP32.
std::int64_t rows_for(double mib, std::int64_t hidden) {
  return static_cast<std::int64_t>(mib * 1048576 / 4 / static_cast<double>(hidden));
}

std::vector<Row> table(double mib) {
  const std::int64_t wide = rows_for(mib, 2048);
  const std::int64_t narrow = rows_for(mib, 1024);
  const json norm = {{"rows", wide}, {"hidden", 2048}};
  const auto blocks = [wide](const char* recipe, const char* layout) {
    return json{{"rows", wide / 128 * 128}, {"cols", 2048}, {"recipe", recipe}, {"layout", layout}};
  };
  return {
      {"layernorm_fwd", norm, {"fp32", "bf16"}},
      {"rmsnorm_fwd", norm, {"fp32", "bf16"}},
      {"layernorm_bwd", norm, {"fp32", "bf16"}},
      {"rmsnorm_bwd", norm, {"fp32", "bf16"}},
      {"softmax_fwd", {{"batches", 1}, {"heads", narrow / 1024}, {"sq", 1024}, {"sk", 1024}}, {"fp32", "bf16"}},
      {"activation_fwd", {{"kind", "gelu"}, {"rows", wide}, {"hidden", 2048}}, {"fp32", "bf16"}},
      {"quantize", {{"rows", wide}, {"cols", 2048}}, {"fp32", "bf16"}},
      {"quantize", blocks("block_1x128", "rowwise"), {"fp32", "bf16"}, " 1x128"},
      {"quantize", blocks("block_1x128", "both"), {"fp32", "bf16"}, " 1x128 both"},
      {"quantize", blocks("block_128x128", "both"), {"fp32", "bf16"}, " 128x128 both"},
      {"quantize", blocks("mxfp8", "rowwise"), {"fp32", "bf16"}, " mxfp8"},
      {"quantize", blocks("mxfp8", "both"), {"fp32", "bf16"}, " mxfp8 both"},
  };
}

double copy_bandwidth(std::size_t bytes) {
  void* from = nullptr;
  void* to = nullptr;
  cudaEvent_t begin{}, end{};
  if (cudaMalloc(&from, bytes) != cudaSuccess || cudaMalloc(&to, bytes) != cudaSuccess) {
    return 0;
  }
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  float best = 1e30F;
  for (int i = 0; i < kLaunches; ++i) {
    float ms = 0;
    cudaEventRecord(begin);
    cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice);
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
    best = std::min(best, ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaFree(from);
  cudaFree(to);
  return 2 * static_cast<double>(bytes) / (1e-3 * static_cast<double>(best));
}

/// A port's buffer: small normal numbers in its format, ones in scales, zeros in integers and amax slots.
std::vector<std::byte> content(const op::Port& port) {
  static const std::vector<double> block = [] {
    std::vector<double> values(1 << 16);
    std::mt19937_64 engine(1);
    std::normal_distribution<double> normal;
    std::ranges::generate(values, [&] { return normal(engine); });
    return values;
  }();
  std::vector<std::byte> bytes(port.extent_bytes());
  const auto width = static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes);
  const bool one = port.role == op::Role::scale;
  for (std::size_t at = 0; at < bytes.size() && !core::is_integer(port.dtype) && port.role != op::Role::amax;) {
    const std::size_t count = std::min(block.size(), (bytes.size() - at) / width);
    const std::vector<double> ones(one ? count : 0, 1.0);
    core::encode(one ? std::span<const double>(ones) : std::span<const double>(block).first(count), port.dtype,
                 std::span(bytes).subspan(at, count * width), core::Overflow::saturate);
    at += count * width;
  }
  return bytes;
}

/// Shares of the copy's bandwidth that one op and mode reached, 0 where a backend has no such op.
struct Shares {
  double own = 0;
  double te = 0;
};

/// A sentence saying why an op fails --check; empty if it passes.
std::string failure_text(const Row& row, const std::string& mode, const Shares& shares) {
  constexpr double kSlower = 1.05;
  constexpr double kBlocks = 0.8;
  const bool has_variant = row.variant[0] != '\0';
  const double least = has_variant ? kBlocks : mode == "fp32" ? 0.85 : 0.75;
  if (std::string(row.op).ends_with("_bwd") || shares.own == 0) {
    return {};
  }
  if (shares.own < least) {
    return "reaches less of the copy's bandwidth than it must";
  }
  return shares.te > kSlower * shares.own ? "is slower than TransformerEngine's" : "";
}

/// The share of the copy's bandwidth; 0 if the backend does not compute the case.
double measure(kernels::Backend& backend, const plan::Case& c, double copy, const Row& row) {
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  const kernels::Call call{&c, ports, {}};
  if (const kernels::Support support = backend.supports(call); !support.yes) {
    std::printf("%-22s %-5s %-20s %s\n", row.name().c_str(), c.mode->name.data(), c.backend.c_str(),
                support.reason.c_str());
    return 0;
  }
  std::vector<kernels::PortMemory> memory;
  double bytes = 0;
  for (const op::Port& port : ports) {
    memory.push_back({&port, backend.memory().allocate(std::max<std::size_t>(port.extent_bytes(), 256))});
    backend.memory().upload(memory.back().data, content(port));
    bytes += static_cast<double>(port.extent_bytes());
  }
  const kernels::Algorithm algorithm = backend.algorithms(call).at(0);
  std::byte* workspace = backend.memory().allocate(std::max<std::size_t>(algorithm.workspace_bytes, 256));
  double best = 1e30;
  for (int i = 0; i < kLaunches; ++i) {
    best = std::min(best, algorithm.launch(memory, workspace)());
  }
  std::printf("%-22s %-5s %-20s %8.3f ms  %5.2f TB/s  %3.0f %% of copy\n", row.name().c_str(), c.mode->name.data(),
              c.backend.c_str(), 1e3 * best, 1e-12 * bytes / best, 100 * bytes / best / copy);
  backend.memory().release(workspace);
  for (const kernels::PortMemory& port : memory) {
    backend.memory().release(port.data);
  }
  return bytes / best / copy;
}

/// All backends on one op and mode.
Shares measure_backends(kernels::loader::CudaBackends& device, const Row& row, const char* mode, double copy) {
  Shares shares;
  for (const std::string name : {"cuda", "transformer_engine", "cudnn"}) {
    const json text = {{"op", row.op}, {"params", row.params}, {"mode", mode}, {"backend", name}};
    try {
      if (kernels::Backend* backend = device.find(name); backend != nullptr) {
        const double share = measure(*backend, plan::case_from_json(text, &app::find_op), copy, row);
        shares.own = name == "cuda" ? share : shares.own;
        shares.te = name == "transformer_engine" ? share : shares.te;
      }
    } catch (const std::exception& error) {
      std::printf("%-22s %-5s %-20s %s\n", row.name().c_str(), mode, name.c_str(), error.what());
    }
  }
  return shares;
}

struct Wanted {
  double mib = 256;
  std::string filter;
  std::vector<std::string> te_libs;
  bool check = false;
};

int bench(const Wanted& wanted) {
  bool held = true;
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // keeps the lines so far if the rest takes too long
  kernels::ExecutorOptions options;
  options.te_libs = wanted.te_libs;
  options.bindings = app::bindings();
  const auto device = kernels::loader::open_cuda_device(0, options);
  const double copy = copy_bandwidth(static_cast<std::size_t>(wanted.mib * 1048576));
  std::printf("%s: copy of %.0f MiB %.2f TB/s\n", device->device().name.c_str(), wanted.mib, 1e-12 * copy);
  for (const Row& row : table(wanted.mib)) {
    if (row.name().find(wanted.filter) == std::string::npos || app::find_op(row.op) == nullptr) {
      continue;
    }
    for (const char* mode : row.modes) {
      const std::string wrong = failure_text(row, mode, measure_backends(*device, row, mode, copy));
      if (wanted.check && !wrong.empty()) {
        std::printf("%s %s: our own kernel %s\n", row.name().c_str(), mode, wrong.c_str());
        held = false;
      }
    }
  }
  return held ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--te-lib" && i + 1 < argc) {
      wanted.te_libs.emplace_back(argv[++i]);
    } else if (word == "--check") {
      wanted.check = true;
    } else if (std::atof(word.c_str()) > 0) {
      wanted.mib = std::atof(word.c_str());
    } else {
      wanted.filter = word;
    }
  }
  try {
    return bench(wanted);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
