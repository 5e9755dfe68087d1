#include "kernels/cublas_support/algorithm_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

namespace numcheck::kernels::cublas_support {
namespace {

struct Named {
  int value;
  std::string_view name;
};

// Generated from the enumerators of cublasLt.h: kTileNames, kStageNames, kClusterNames.
#include "cublaslt_names.inc"

template <class Names>
std::string name_of(const Names& names, int value) {
  for (const Named& entry : names) {
    if (entry.value == value) {
      return std::string(entry.name);
    }
  }
  return fmt::format("#{}", value);
}

/// A configuration attribute; `fallback` where the library does not know it.
template <class T>
T config(const AlgorithmReader& reader, const cublasLtMatmulAlgo_t& algorithm,
         cublasLtMatmulAlgoConfigAttributes_t attribute, T fallback) {
  T value{};
  std::size_t written = 0;
  const cublasStatus_t status = reader.config_get(&algorithm, attribute, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : fallback;
}

std::string reduction_text(std::uint32_t scheme) {
  switch (scheme) {
    case CUBLASLT_REDUCTION_SCHEME_NONE:
      return "none";
    case CUBLASLT_REDUCTION_SCHEME_INPLACE:
      return "inplace";
    case CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE:
      return "compute_type";
    case CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE:
      return "output_type";
    default:
      return fmt::format("#{}", scheme);
  }
}

struct Flag {
  std::uint64_t bit;
  std::string_view name;
};

constexpr std::array kFlags = {
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA, "FMA"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA, "HMMA"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_IMMA, "IMMA"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_DMMA, "DMMA"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F, "acc16F"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F, "acc32F"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_64F, "acc64F"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I, "acc32I"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F, "in16F"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF, "in16BF"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, "inTF32"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F, "in32F"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F, "in64F"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8I, "in8I"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E4M3, "inE4M3"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_8F_E5M2, "inE5M2"},
    Flag{CUBLASLT_NUMERICAL_IMPL_FLAGS_GAUSSIAN, "gaussian"},
};

std::string flags_text(const AlgorithmReader& reader, const cublasLtMatmulAlgo_t& algorithm) {
  std::uint64_t flags = 0;
  std::size_t written = 0;
  if (reader.capability_get(&algorithm, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags, &written) !=
      CUBLAS_STATUS_SUCCESS) {
    return "unknown";
  }
  std::string text;
  for (const Flag& flag : kFlags) {
    if ((flags & flag.bit) != 0) {
      text += std::string(flag.name) + " ";
    }
  }
  return text + fmt::format("0x{:x}", flags);
}

struct Config {
  Config(const AlgorithmReader& reader, const cublasLtMatmulAlgo_t& algorithm)
      : id(config<std::int32_t>(reader, algorithm, CUBLASLT_ALGO_CONFIG_ID, -1)),
        tile(name_of(kTileNames,
                     static_cast<int>(config<std::uint32_t>(reader, algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, 0)))),
        stages(name_of(kStageNames,
                       static_cast<int>(config<std::uint32_t>(reader, algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID, 0)))),
        split_k(config<std::int32_t>(reader, algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 1)),
        scheme(config<std::uint32_t>(reader, algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 0)),
        swizzle(config<std::uint32_t>(reader, algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 0)),
        custom(config<std::uint32_t>(reader, algorithm, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 0)),
        cluster(name_of(kClusterNames,
                        config<std::uint16_t>(reader, algorithm, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 0))) {}

  std::int32_t id;
  std::string tile, stages;
  std::int32_t split_k;  ///< negative: stream-K, which the header does not name
  std::uint32_t scheme, swizzle, custom;
  std::string cluster;
};

}  // namespace

AlgorithmReader reader_of(const CublasLt& lt) {
  return {lt.config_get, lt.capability_get};
}

AlgorithmShape shape_of(const AlgorithmReader& reader, const cublasLtMatmulAlgo_t& algorithm) {
  const Config c(reader, algorithm);
  AlgorithmShape shape;
  shape.key = fmt::format("{} {} {} split {} reduction {} custom {} cluster {}", c.id, c.tile, c.stages, c.split_k,
                          c.scheme, c.custom, c.cluster);
  // "64x4" is 4 stages of 64 products.
  std::int64_t k_tile = 0;
  std::from_chars(c.stages.data(), c.stages.data() + c.stages.size(), k_tile);
  shape.k_tile = k_tile > 0 && c.stages.find('x') != std::string::npos ? k_tile : shape.k_tile;
  shape.slices = std::max(1, c.split_k);
  return shape;
}

AlgorithmText describe_algorithm(const AlgorithmReader& reader, const cublasLtMatmulAlgo_t& algorithm) {
  const Config c(reader, algorithm);
  AlgorithmText text;
  text.label = fmt::format("cublasLt algo {}, tile {}", c.id, c.tile);
  if (c.split_k < 0) {
    text.label += ", stream-k";
  } else if (c.split_k > 1) {
    text.label += fmt::format(", split-k {} ({})", c.split_k, reduction_text(c.scheme));
  }
  text.details = {{"id", std::to_string(c.id)},
                  {"tile", c.tile},
                  {"stages", c.stages},
                  {"split_k", std::to_string(c.split_k)},
                  {"reduction", reduction_text(c.scheme)},
                  {"swizzle", std::to_string(c.swizzle)},
                  {"custom", std::to_string(c.custom)},
                  {"cluster", c.cluster},
                  {"flags", flags_text(reader, algorithm)}};
  const bool in_output_format =
      c.scheme == CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE || c.scheme == CUBLASLT_REDUCTION_SCHEME_INPLACE;
  text.rounding.slices = in_output_format && c.split_k > 1 ? c.split_k : 1;
  return text;
}

std::string labels_of(std::span<const AlgorithmText> products) {
  std::vector<std::pair<std::string, int>> labels;  // and of how many products
  for (const AlgorithmText& product : products) {
    const auto same = std::ranges::find(labels, product.label, &std::pair<std::string, int>::first);
    same == labels.end() ? labels.emplace_back(product.label, 1).second : ++same->second;
  }
  std::string text;
  for (const auto& [label, count] : labels) {
    text += fmt::format("{}{} ({} of {} products)", text.empty() ? "" : "; ", label, count, products.size());
  }
  return text;
}

}  // namespace numcheck::kernels::cublas_support
