// Grouped GEMM: matrix products of different sizes, computed by one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "op/field.hpp"
#include "op/gemm.hpp"
#include "op/op.hpp"
#include "op/reference.hpp"

namespace numcheck::op {

/// Libraries that have a limit take as many (TransformerEngine gemm.h).
inline constexpr std::size_t kMostGroups = 64;

/// Parameters of `grouped_gemm`: what mixture-of-experts layers multiply, a product for each expert.
///
///   D_g = f(alpha op(A_g) op(B_g) + beta C_g + bias_g),   op(A_g) is m_g x k_g, op(B_g) is k_g x n_g, all row-major
///
/// f and the kinds of scales are those of `gemm`, and the same for all groups; the scales themselves are each group's own.
/// Sizes are lists: "1024+512+256" has three groups, and a single size is that of all groups. Plans call them group_m, group_n and
/// group_k, because those of `gemm` are numbers. A group may be empty (m_g = 0 or n_g = 0), or have nothing to add up (k_g = 0):
/// then D_g = f(beta C_g + bias_g).
/// Ports: those of `gemm`, each with its group's number: a0, b0, c0 (with beta), bias0, a0_scale_inv and b0_scale_inv (FP8),
/// d0, d0_scale and d0_amax (FP8 outputs), then a1 and so on. Every group has outputs of its own, so it is poisoned and
/// judged by itself, by the error model of its own product.
/// Sources: cuBLAS manual, cublasGemmGroupedBatchedEx; TransformerEngine gemm.h, nvte_multi_tensor_gemm.
struct GroupedGemmParams {
  std::string m = "64";
  std::string n = "64";
  std::string k = "64";
  std::int64_t groups = 0;  ///< 0: as many as the longest list
  bool trans_a = false;
  bool trans_b = false;
  double alpha = 1;
  double beta = 0;
  bool in_place = false;
  bool bias = false;
  std::string epilogue = "none";
  std::string output = "default";
  std::string accumulate = "default";
  std::string scaling = "tensor";
  bool power_of_two = false;

  template <class V>
  void describe(V& v) {
    // A choice without choices is text.
    v.choice("group_m", "m", m, {}, "rows of D in each group, joined by +, or one number for all: 1024+512+0");
    v.choice("group_n", "n", n, {}, "columns of D in each group, likewise");
    v.choice("group_k", "k", k, {}, "reduction length in each group, likewise");
    v.integer("groups", "g", groups,
              {.minimum = 0, .maximum = kMostGroups, .doc = "how many; 0 means as many as the longest list has"});
    v.boolean("trans_a", "ta", trans_a, "A is stored k x m");
    v.boolean("trans_b", "tb", trans_b, "B is stored n x k");
    v.number("alpha", "alpha", alpha, {.minimum = -1e30, .maximum = 1e30, .doc = "factor of the products"});
    v.number("beta", "beta", beta, {.minimum = -1e30, .maximum = 1e30, .doc = "factor of C; 0 means no C"});
    v.boolean("in_place", "ip", in_place, "C and D share memory, as when weight gradients accumulate", true);
    v.boolean("bias", "bias", bias, "adds a row of n numbers to every row of a group, each group its own");
    v.choice("epilogue", "epi", epilogue, {"none", "relu", "gelu"}, "function applied before outputs are rounded");
    v.choice("output", "out", output, {"default", "fp32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"},
             "format of D; default is the mode's", true);
    v.choice("accumulate", "acc", accumulate, {"default", "fast", "split"},
             "FP8 accumulation: split promotes partial sums to FP32, fast does not; default is split", true);
    v.choice("scaling", "sc", scaling,
             {"tensor", "outer_vector", "1x128_1x128", "1x128_128x128", "128x128_1x128", "mxfp8", "nvfp4"},
             "which elements of A and of B share a scale, as in gemm, in every group");
    v.boolean("power_of_two", "p2", power_of_two, "FP32 scales of rows and blocks are powers of two");
  }
};

/// The product of each group. Throws core::InternalError if the sizes are no legal lists, which Op::check reports.
[[nodiscard]] std::vector<GemmParams> products_of(const GroupedGemmParams& params);

/// Name of a group's port: "a" and 3 give "a3", "a_scale_inv" and 3 give "a3_scale_inv". Lives as long as the process.
/// Throws core::InternalError if gemm has no such port, or there are fewer groups.
[[nodiscard]] std::string_view name_in_group(std::string_view port, std::size_t group);

/// A group's port, by its name in `gemm`.
struct GroupPort {
  std::string_view port;
  std::size_t group = 0;
};

/// Nothing for names that no group's port has.
[[nodiscard]] std::optional<GroupPort> find_group_port(std::string_view name);

/// The inverse of name_in_group().
[[nodiscard]] GroupPort group_port(std::string_view name);

/// The ports of one group under their names in `gemm`, from the ports of all groups.
[[nodiscard]] std::vector<Port> ports_of_group(std::span<const Port> ports, std::size_t group);

/// The operands of one group under their names in `gemm`, from those of all groups.
[[nodiscard]] std::vector<Operand> operands_of_group(std::span<const Operand> operands, std::size_t group);

/// Whether every output of the op is a product of two of its inputs: `gemm` and `grouped_gemm`.
[[nodiscard]] bool is_product(const Op& op);

/// A product among an op's outputs.
struct Product {
  GemmParams params;
  std::string_view a, b, c, bias, d;          ///< its ports; c exists if beta is not 0, bias if params.bias
  std::string_view a_scale_inv, b_scale_inv;  ///< those with the scales, in modes that have them
  std::size_t group = 0;                      ///< that it is, of grouped_gemm
};

/// The product behind an output of `gemm` or `grouped_gemm`; nothing for other ops, and for ports that are no product.
[[nodiscard]] std::optional<Product> product_behind(const Op& op, const Params& params, std::string_view output);

/// Whether FP8 sums are to be promoted: `gemm` and `grouped_gemm` with accumulate = "split".
[[nodiscard]] bool promotes_sums(const Op& op, const Params& params, const Mode& mode);

/// The operands of that product under their names in `gemm`.
[[nodiscard]] std::vector<Operand> operands_behind(const Op& op, std::span<const Operand> operands,
                                                   std::string_view output);

/// |alpha sA sB|, by which the sums of such a product are multiplied.
[[nodiscard]] double scale_of_sums(const GemmParams& product, std::span<const Operand> operands);

/// The descriptor of `grouped_gemm`.
[[nodiscard]] const Op& grouped_gemm();

}  // namespace numcheck::op
