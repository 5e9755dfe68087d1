#include "eligibility/facts.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "op/field.hpp"
#include "op/mode.hpp"

namespace numcheck::eligibility {

namespace {

constexpr double kMostScores = 0x1p62;  // far beyond any gate

}  // namespace

Facts::Facts(const op::AttentionParams& p, const Circumstances& c)
    : numbers{c.sm,
              c.cudnn,
              p.d,
              p.value_channels(),
              std::max(p.d, p.value_channels()),
              std::min(p.d, p.value_channels()),
              p.sq,
              p.sk,
              p.window_left,
              p.window_right,
              p.align,
              static_cast<std::int64_t>(std::min(static_cast<double>(p.batches) * static_cast<double>(p.heads) *
                                                     static_cast<double>(p.sq) * static_cast<double>(p.sk),
                                                 kMostScores))},
      words{core::dtype_info(c.storage).name, p.mask, p.bias, p.softmax, p.layout, p.packing, p.dropout_mask},
      flags{c.training,
            c.backward,
            c.deterministic,
            p.is_causal(),
            p.is_causal() && p.diagonal(0, 1) != 0,
            p.has_lengths(),
            p.sq > p.sk,
            p.sq != p.sk,
            p.d != p.value_channels(),
            p.key_heads() != p.heads,
            p.softcap != 0,
            p.has_dropout(),
            p.max_logit} {}

std::vector<std::string_view> legal_words(WordFact fact) {
  std::vector<std::string_view> legal;
  if (fact == WordFact::storage) {
    for (const op::Mode& mode : op::all_modes()) {
      legal.push_back(core::dtype_info(mode.first).name);
    }
    return legal;
  }
  const std::string_view name = kWordFacts.at(static_cast<std::size_t>(fact));
  const std::vector<op::Field>& fields = op::fields_of<op::AttentionParams>();
  const auto field = std::ranges::find(fields, name, &op::Field::name);
  if (field == fields.end()) {
    throw core::InternalError("attention has no parameter " + std::string(name));
  }
  return field->choices;
}

}  // namespace numcheck::eligibility
