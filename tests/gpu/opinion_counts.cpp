// What our comparison reports as other tools' opinions: opinion_counts FORMAT GOT EXPECTED ELEMENTS, where GOT holds numbers
// of the format and EXPECTED as many doubles, both raw. Each run of ELEMENTS is a separate output. Prints, for each
// instruction set of this machine and each output, torch's and numpy's mismatches.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/isa.hpp"
#include "metric/compare.hpp"

namespace {

using namespace numcheck;

template <class T>
std::vector<T> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<T> values(bytes.size() / sizeof(T));
  const auto source = std::as_bytes(std::span(bytes)).first(values.size() * sizeof(T));
  std::copy(source.begin(), source.end(), std::as_writable_bytes(std::span(values)).begin());
  return values;
}

metric::Statistics compare(core::Dtype dtype, std::span<const std::byte> got, std::span<const double> expected) {
  const model::ErrorModel model;
  op::Port port;
  port.dtype = dtype;
  port.cols = port.ld = port.batch_stride = static_cast<std::int64_t>(expected.size());
  metric::CompareInput input;
  input.port = &port;
  input.got = got;
  input.expected = expected;
  input.model = &model;
  return metric::compare(input);
}

}  // namespace

int main(int argc, char** argv) {
  const auto dtype = argc == 5 ? core::parse_dtype(argv[1]) : std::nullopt;
  if (!dtype.has_value()) {
    std::fputs("opinion_counts FORMAT GOT EXPECTED ELEMENTS\n", stderr);
    return 2;
  }
  const std::vector<std::byte> got = read<std::byte>(argv[2]);
  const std::vector<double> expected = read<double>(argv[3]);
  const std::size_t elements = std::strtoul(argv[4], nullptr, 10);
  const auto bytes = static_cast<std::size_t>(core::dtype_info(*dtype).storage_bytes);
  for (const core::Isa isa : {core::Isa::baseline, core::Isa::avx2, core::Isa::avx512}) {
    if (!core::is_supported(isa)) {
      continue;
    }
    core::force_isa(isa);
    for (std::size_t at = 0; at + elements <= expected.size(); at += elements) {
      const metric::Statistics s = compare(*dtype, std::span(got).subspan(at * bytes, elements * bytes),
                                           std::span(expected).subspan(at, elements));
      std::printf("%s %llu %llu\n", core::isa_name(isa).data(),
                  static_cast<unsigned long long>(s.torch_allclose.mismatches),
                  static_cast<unsigned long long>(s.numpy_allclose.mismatches));
    }
  }
  return 0;
}
