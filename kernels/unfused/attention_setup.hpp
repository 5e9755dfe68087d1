// An attention case in the terms of products and kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/contract/backend.hpp"
#include "kernels/unfused/attention_kernels.hpp"
#include "kernels/unfused/product.hpp"
#include "op/attention_layout.hpp"
#include "op/mode.hpp"

namespace numcheck::kernels::unfused {

/// Throws NotSupported for formats and layouts that this path does not have.
void require_known(const op::AttentionParams& p, const op::Mode& mode);

[[nodiscard]] Format format_of(core::Dtype dtype);

/// Without the pointers.
[[nodiscard]] AttentionRules rules_of(const op::AttentionParams& p, const op::Mode& mode);

/// The same with what the ports hold: lengths, bias, offset.
[[nodiscard]] AttentionRules with_inputs(AttentionRules rules, std::span<const PortMemory> ports);

/// Of that port, in the case's layout and packing.
[[nodiscard]] HeadStrides strides_of(const op::AttentionParams& p, op::Side side, std::string_view port,
                                     std::int64_t channels);

/// The matrices of an attention case, one for each sequence and head of the queries; the dimensions of the batch are
/// sequences, heads of keys, and heads of queries that share one of those.
class AttentionStacks {
 public:
  explicit AttentionStacks(const op::AttentionParams& p);

  [[nodiscard]] Stack queries() const { return of_queries("q", p_.d); }     ///< q, dq: sq x d
  [[nodiscard]] Stack outputs() const { return of_queries("o", width_); }   ///< o, do: sq x dv
  [[nodiscard]] Stack keys() const { return of_keys("k", p_.d); }           ///< k: sk x d
  [[nodiscard]] Stack values() const { return of_keys("v", width_); }       ///< v: sk x dv
  [[nodiscard]] Stack scores() const { return dense(p_.sq, p_.sk); }        ///< sq x sk
  [[nodiscard]] Stack key_parts() const { return dense(p_.sk, p_.d); }      ///< dk of every head of the queries
  [[nodiscard]] Stack value_parts() const { return dense(p_.sk, width_); }  ///< dv of every head of the queries
  [[nodiscard]] ProductShape product(const Factor& a, const Factor& b, const Stack& d, double alpha) const;
  [[nodiscard]] std::int64_t group() const noexcept { return group_; }

 private:
  [[nodiscard]] Stack of_queries(std::string_view port, std::int64_t channels) const;
  [[nodiscard]] Stack of_keys(std::string_view port, std::int64_t channels) const;
  [[nodiscard]] Stack dense(std::int64_t rows, std::int64_t cols) const;

  op::AttentionParams p_;
  std::int64_t group_;
  std::int64_t width_;
};

/// Places in a workspace, each 256-byte aligned.
class Regions {
 public:
  /// Adds a place and returns where it starts.
  [[nodiscard]] std::size_t add(std::int64_t elements, std::int64_t element_bytes);
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Adds a place for the largest workspace of the products, and returns where it starts.
[[nodiscard]] std::size_t add_workspace(Regions& regions, std::initializer_list<const BatchedProduct*> products);

/// Algorithm::details: every product, and what is stored in the format in between.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> details_of(
    const op::AttentionParams& p, const op::Mode& mode, std::initializer_list<const BatchedProduct*> products);

/// How often a score is rounded to the format before its exponential: see bindings.hpp.
[[nodiscard]] int score_roundings(const op::AttentionParams& p) noexcept;

/// Slices of k that some product adds in the format: model::DeclaredRounding::slices.
[[nodiscard]] int rounded_slices(std::initializer_list<const BatchedProduct*> products) noexcept;

}  // namespace numcheck::kernels::unfused
