#include "diagnose/attention_window_scan.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/dtype.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::diagnose {
namespace {

/// The outputs of single queries for every number of keys.
class Scan {
 public:
  Scan(const Evidence& evidence, const op::AttentionParams& p)
      : evidence_(evidence),
        p_(p),
        ports_(evidence.subject.c.op->ports(evidence.subject.c.params, *evidence.subject.c.mode)) {
    q_ = input("q");
    k_ = input("k");
    v_ = input("v");
  }

  /// The last key that a query sees from `first` on, a step of 1 or -1 apart, for which the output fits best in all heads.
  [[nodiscard]] std::int64_t last_key(std::int64_t query, std::int64_t first, std::int64_t step) const {
    const std::int64_t keys = step > 0 ? p_.sk - first : first + 1;
    std::vector<double> squares(static_cast<std::size_t>(std::max<std::int64_t>(keys, 1)), 0.0);
    for (std::int64_t head = 0; head < std::min(p_.batches * p_.heads, kMostHeads); ++head) {
      add_squares(head, query, first, step, squares);
    }
    return first + step * static_cast<std::int64_t>(std::ranges::min_element(squares) - squares.begin());
  }

 private:
  static constexpr std::int64_t kMostHeads = 8;  // agree well enough

  [[nodiscard]] prepare::SharedDoubles input(std::string_view port) const {
    return evidence_.subject.inputs.of(op::port_named(ports_, port));
  }

  [[nodiscard]] op::HeadPlace place(op::Side side, std::int64_t head, std::int64_t channels) const {
    const std::int64_t of = side == op::Side::keys ? head % p_.heads / (p_.heads / p_.key_heads()) : head % p_.heads;
    return op::head_place(p_, side, head / p_.heads, of, channels);
  }

  static std::span<const double> row(std::span<const double> all, const op::HeadPlace& place, std::int64_t position,
                                     std::int64_t channels) {
    return all.subspan(static_cast<std::size_t>(place.first + position * place.stride),
                       static_cast<std::size_t>(channels));
  }

  [[nodiscard]] double score(std::span<const double> q, std::span<const double> k) const {
    double sum = 0;
    for (std::size_t c = 0; c < q.size(); ++c) {
      sum += q[c] * k[c];
    }
    const double scaled = p_.factor() * sum;
    return p_.softcap == 0 ? scaled : p_.softcap * std::tanh(scaled / p_.softcap);
  }

  /// Keys join one by one; as in online softmax, what was summed is scaled down whenever a larger score comes.
  void add_squares(std::int64_t head, std::int64_t query, std::int64_t first, std::int64_t step,
                   std::vector<double>& squares) const {
    const std::int64_t channels = p_.value_channels();
    const auto q = row(q_->span(), place(op::Side::queries, head, p_.d), query, p_.d);
    const auto o = row(evidence_.delivered, place(op::Side::queries, head, channels), query, channels);
    const op::HeadPlace of_k = place(op::Side::keys, head, p_.d), of_v = place(op::Side::keys, head, channels);
    std::vector<double> sums(o.size(), 0.0);
    double largest = -std::numeric_limits<double>::infinity(), weights = 0;
    for (std::size_t i = 0; i < squares.size(); ++i) {
      const std::int64_t key = first + step * static_cast<std::int64_t>(i);
      const double s = score(q, row(k_->span(), of_k, key, p_.d));
      const double before = std::exp(largest - std::max(largest, s)), now = std::exp(s - std::max(largest, s));
      largest = std::max(largest, s);
      weights = weights * before + now;
      const auto v = row(v_->span(), of_v, key, channels);
      for (std::size_t c = 0; c < o.size(); ++c) {
        sums[c] = sums[c] * before + now * v[c];
        const double off = o[c] - sums[c] / weights;
        squares[i] += off * off;
      }
    }
  }

  const Evidence& evidence_;
  const op::AttentionParams& p_;
  std::vector<op::Port> ports_;
  prepare::SharedDoubles q_, k_, v_;
};

}  // namespace

std::optional<Windows> windows_of_output(const Evidence& evidence, const op::AttentionParams& p) {
  const bool is_plain = p.mask == "none" && p.bias == "none" && p.softmax == "vanilla" && !p.has_dropout() &&
                        p.packing == "none" && p.layout != "thd";
  const bool has_factors = core::is_fp8(evidence.subject.c.mode->first);
  const std::int64_t own = p.diagonal(p.sq, p.sk);  // of the first query; that of the last one is the last key
  if (evidence.port != "o" || !is_plain || has_factors || own < 0 || p.sk < 2) {
    return std::nullopt;
  }
  const Scan scan(evidence, p);
  Windows found;
  const std::int64_t begin = scan.last_key(p.sq - 1, p.sk - 1, -1);
  found.left = begin == 0 ? -1 : p.sk - 1 - begin;
  const std::int64_t end = scan.last_key(0, found.left < 0 ? 0 : std::max<std::int64_t>(0, own - found.left), 1);
  found.right = end == p.sk - 1 ? -1 : end - own;
  return found.right < -1 ? std::nullopt : std::optional(found);
}

}  // namespace numcheck::diagnose
