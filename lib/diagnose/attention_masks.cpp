// Hypotheses about masks of attention that the op has no word for, and about keys and values of neighbouring positions.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "diagnose/attention_positions.hpp"
#include "diagnose/hypothesis.hpp"
#include "op/attention_layout.hpp"
#include "op/attention_params.hpp"

namespace numcheck::diagnose {
namespace {

constexpr std::int64_t kMostPairs = std::int64_t{1} << 24;  // of which a mask is written down

bool is_attention(const plan::Case& c) {
  return c.op->name == "attention_fwd" || c.op->name == "attention_bwd";
}

/// Whether query i sees key j; `own` is its key on the diagonal.
using Sees = std::function<bool(std::int64_t own, std::int64_t j)>;

/// Queries that see nothing: kernels leave 0 or NaN.
decltype(Trial::then) nothing_seen(const Evidence& evidence, const op::AttentionParams& p,
                                   const std::vector<std::int64_t>& blind) {
  std::vector<std::size_t> zeros, nans;
  for (std::int64_t head = 0; head < p.batches * p.heads && evidence.port == "o"; ++head) {
    const op::HeadPlace place =
        op::head_place(p, op::Side::queries, head / p.heads, head % p.heads, p.value_channels());
    for (const std::int64_t i : blind) {
      for (std::int64_t c = 0; c < p.value_channels(); ++c) {
        const auto at = static_cast<std::size_t>(place.first + i * place.stride + c);
        (std::isnan(evidence.delivered[at]) ? nans : zeros).push_back(at);
      }
    }
  }
  return change_of(evidence,
                   [zeros = std::move(zeros), nans = std::move(nans)](op::OutputValues& output, op::OutputYardsticks*) {
                     for (const std::size_t at : zeros) {
                       output.value[at] = 0;
                     }
                     for (const std::size_t at : nans) {
                       output.value[at] = std::numeric_limits<double>::quiet_NaN();
                     }
                   });
}

/// With a bias of 0 and -infinity in place of the mask.
Hypothesis with_mask(const Evidence& evidence, const op::AttentionParams& p, std::string name, std::string cause,
                     const Sees& sees) {
  const plan::Case& c = evidence.subject.c;
  Trial trial = as_declared(evidence.subject);
  const auto set = [&](std::string_view field, op::Value value) {
    trial.c.params[*op::field_index(*c.op, field)] = std::move(value);
  };
  set("mask", std::string("none"));
  set("bias", std::string("post_scale"));
  auto bias = std::make_shared<core::Buffer<double>>(static_cast<std::size_t>(p.heads * p.sq * p.sk));
  std::vector<std::int64_t> blind;
  for (std::int64_t i = 0; i < p.heads * p.sq; ++i) {
    const std::int64_t own = i % p.sq + p.diagonal(p.sq, p.sk);
    bool any = false;
    for (std::int64_t j = 0; j < p.sk; ++j) {
      any = any || sees(own, j);
      (*bias)[static_cast<std::size_t>(i * p.sk + j)] = sees(own, j) ? 0 : -std::numeric_limits<double>::infinity();
    }
    if (!any) {  // the reference does not say what such a row is
      (*bias)[static_cast<std::size_t>(i * p.sk)] = 0;
    }
    if (!any && i < p.sq) {
      blind.push_back(i);
    }
  }
  trial.inputs.set("bias", std::move(bias));
  if (!blind.empty()) {
    trial.then = nothing_seen(evidence, p, blind);
  }
  return {.name = std::move(name),
          .family = {},
          .cause = std::move(cause),
          .remedy =
              "Compare the masks that both sides pass or build (is_causal beside attn_mask, tril with a diagonal, "
              "prefix and document masks); what a mask of 0 and -infinity says can be given as tensor bias with "
              "--param bias=post_scale.",
          .trial = std::move(trial)};
}

std::vector<Hypothesis> other_masks(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  if (!is_attention(c) || !evidence.sample.all()) {
    return {};
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  const bool is_causal = p.mask == "causal" || p.mask == "causal_bottom_right";
  const bool may_have_bias = p.bias == "none" && !p.has_lengths() && p.window_left < 0 && p.window_right < 0;
  op::AttentionParams biased = p;
  biased.bias = "post_scale";
  biased.mask = "none";
  if (!may_have_bias || (!is_causal && p.mask != "none") || p.heads * p.sq * p.sk > kMostPairs || p.sk < 2) {
    return {};
  }
  std::vector<Hypothesis> all;
  const auto add = [&](std::string name, std::string cause, const Sees& sees) {
    Hypothesis made = with_mask(evidence, p, std::move(name), std::move(cause), sees);
    if (c.op->check(made.trial.c.params, *c.mode).empty()) {
      all.push_back(std::move(made));
    }
  };
  if (!is_causal) {
    add("own_key_masked", "no query sees the key of its own position",
        [](std::int64_t own, std::int64_t j) { return j != own; });
    return all;
  }
  add("own_key_masked",
      "queries see only the keys before their own position: the diagonal of the causal mask is left out",
      [](std::int64_t own, std::int64_t j) { return j < own; });
  const Positions wrong = wrong_positions(evidence);
  const bool of_queries = evidence.port == "o" || evidence.port == "lse" || evidence.port == "dq";
  if (!of_queries || port_of(evidence).rows != p.sq || wrong.last < wrong.first) {
    return all;
  }
  const std::int64_t shift = p.diagonal(p.sq, p.sk);
  // Of queries beyond the prefix, at least one is right.
  if (const std::int64_t prefix = wrong.last + shift + 2; wrong.first == 0 && prefix < p.sk && wrong.last + 2 < p.sq) {
    add(fmt::format("prefix_unmasked={}", prefix),
        fmt::format("all queries see the first {} keys, whatever their position: a prefix without causal mask", prefix),
        [prefix](std::int64_t own, std::int64_t j) { return j <= own || j < prefix; });
  }
  if (const std::int64_t chunk = wrong.first + shift; chunk > 1) {
    add(fmt::format("chunks={}", chunk), fmt::format("queries see only keys of their own chunk of {} positions", chunk),
        [chunk](std::int64_t own, std::int64_t j) { return j <= own && j / chunk == own / chunk; });
  }
  return all;
}

/// A tensor of keys or values whose positions are those before or after; the one that is missing is 0, or comes from the
/// other end.
prepare::SharedDoubles shifted(const core::Buffer<double>& from, const op::AttentionParams& p, std::int64_t channels,
                               std::int64_t step, bool around) {
  auto to = std::make_shared<core::Buffer<double>>(from.size());
  std::ranges::copy(from.span(), to->span().begin());
  for (std::int64_t head = 0; head < p.batches * p.key_heads(); ++head) {
    const op::HeadPlace place = op::head_place(p, op::Side::keys, head / p.key_heads(), head % p.key_heads(), channels);
    for (std::int64_t j = 0; j < p.sk; ++j) {
      const std::int64_t other = j + step, source = (other + p.sk) % p.sk;
      for (std::int64_t at = place.first + j * place.stride; at < place.first + j * place.stride + channels; ++at) {
        const std::int64_t moved = at + (source - j) * place.stride;
        (*to)[static_cast<std::size_t>(at)] = other == source || around ? from[static_cast<std::size_t>(moved)] : 0;
      }
    }
  }
  return to;
}

std::vector<Hypothesis> other_positions(const Evidence& evidence) {
  const plan::Case& c = evidence.subject.c;
  if (!is_attention(c) || op::from_params<op::AttentionParams>(c.params).layout == "thd") {
    return {};
  }
  const auto p = op::from_params<op::AttentionParams>(c.params);
  const std::vector<op::Port> ports = c.op->ports(c.params, *c.mode);
  if (p.sk < 2 || p.packing != "none") {
    return {};
  }
  std::vector<Hypothesis> all;
  for (const std::string_view which : {"k", "v", "kv"}) {
    if (which == "kv" && p.has_dropout()) {
      continue;  // the same as a mask that is one off
    }
    for (const std::int64_t step : {-1, 1}) {
      for (const bool around : {false, true}) {
        Trial trial = as_declared(evidence.subject);
        for (const char letter : which) {
          const op::Port& port = op::port_named(ports, std::string(1, letter));
          trial.inputs.set(std::string(port.name), shifted(*evidence.subject.inputs.of(port), p,
                                                           letter == 'k' ? p.d : p.value_channels(), step, around));
        }
        const std::string_view spelled = which == "kv" ? "keys and values" : which == "k" ? "keys" : "values";
        const std::string name =
            fmt::format("{}_of_{}_position", which == "kv" ? "k_and_v" : which, step < 0 ? "previous" : "next");
        all.push_back(
            {.name = name,
             .family = name,
             .cause = fmt::format("each position has the {} of the {} one{}", spelled, step < 0 ? "previous" : "next",
                                  around ? ", and the first and the last are exchanged around the end" : ""),
             .remedy = "Look at where keys and values are written into the cache, and at the offset with which "
                       "they are read: one of the two is one off.",
             .trial = std::move(trial)});
      }
    }
  }
  return all;
}

constexpr std::array kRows = {
    CatalogueRow{"own_key_masked, prefix_unmasked=N, chunks=N", "attention with a mask that the op has no word for",
                 &other_masks, Stage::first, true},
    CatalogueRow{"k_of_previous_position, v_of_next_position, k_and_v_of_previous_position",
                 "keys or values of the position before or after", &other_positions}};

}  // namespace

std::span<const CatalogueRow> attention_mask_rows() {
  return kRows;
}

}  // namespace numcheck::diagnose
