#include "diagnose/attention_reading.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "diagnose/attention_lengths.hpp"

namespace numcheck::diagnose {
namespace {

using Dimensions = std::vector<std::int64_t>;

constexpr std::array<std::string_view, 4> kLayouts = {"bshd", "bhsd", "sbhd", "thd"};
/// What the shapes tell, besides the layout.
constexpr std::array<std::string_view, 7> kSizes = {"batches", "heads", "kv_heads", "sq", "sk", "d", "dv"};

bool has_heads(std::string_view port) {
  return is_of_keys(port) || is_of_values(port) || port == "q" || port == "dq";
}

bool is_statistic(std::string_view port) {
  return port == "lse" || port == "max_logit";
}

const data::FileTensor* find(const std::vector<NamedTensor>& tensors, std::string_view port) {
  const auto found = std::ranges::find(tensors, port, &NamedTensor::port);
  return found == tensors.end() ? nullptr : &found->tensor;
}

std::string spelled(const Dimensions& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

/// Sizes of a tensor by the letters of its layout: t or b and s, h, d.
using Letters = std::map<char, std::int64_t>;

/// One layout, tried on the tensors.
class Reader {
 public:
  Reader(std::string_view layout, const ChosenParams& chosen, const std::vector<NamedTensor>& tensors)
      : chosen_(chosen), tensors_(tensors) {
    reading_.layout = layout;
  }

  AttentionReading read() {
    read_operands();
    read_lengths();
    settle();
    for (const NamedTensor& named : tensors_) {
      reading_.shapes.push_back({named.port, shape_of(named)});
    }
    return std::move(reading_);
  }

 private:
  [[nodiscard]] std::optional<std::int64_t> chosen(std::string_view name) const {
    const auto found = chosen_.find(name);
    // Of heads of keys and channels of values, 0 says: as many as the others.
    const bool is_open = found == chosen_.end() || std::get<std::int64_t>(found->second) == 0;
    return is_open ? std::nullopt : std::optional(std::get<std::int64_t>(found->second));
  }

  [[nodiscard]] bool is_ragged() const { return reading_.layout == "thd"; }

  /// The dimensions, of which one may be two: of `heads` heads, or of heads of that many `channels`.
  [[nodiscard]] Letters letters(std::string_view port, std::optional<std::int64_t> heads,
                                std::optional<std::int64_t> channels) const {
    Dimensions shape = find(tensors_, port)->shape;
    const std::string& layout = reading_.layout;
    const bool folds = shape.size() + 1 == layout.size();
    if (folds && layout == "bhsd") {
      const std::int64_t count = heads.value_or(1);
      if (count == 0 || shape[0] % count != 0) {
        throw Misfit{fmt::format("{} is {}, which is not a multiple of {} heads", port, spelled(shape), count)};
      }
      shape.insert(shape.begin() + 1, count);
      shape[0] /= count;
    } else if (folds) {
      const std::int64_t last = shape.back();
      const std::int64_t count = heads.value_or(channels.value_or(0) > 0 ? last / *channels : 1);
      if (count == 0 || last % count != 0) {
        throw Misfit{fmt::format("{} is {}, which is not a multiple of {} heads", port, spelled(shape), count)};
      }
      shape.back() = count;
      shape.push_back(last / count);
    }
    if (shape.size() != layout.size()) {
      throw Misfit{fmt::format("{} has {} dimensions", port, shape.size())};
    }
    Letters sizes;
    for (std::size_t i = 0; i < layout.size(); ++i) {
      sizes[layout[i]] = shape[i];
    }
    return sizes;
  }

  static void require_same(std::string_view what, std::string_view one, std::int64_t a, std::string_view other,
                           std::int64_t b) {
    if (a != b) {
      throw Misfit{fmt::format("{} has {} {}, and {} {}", one, a, what, other, b)};
    }
  }

  void require_chosen(std::string_view name, std::int64_t size) const {
    if (const auto number = chosen(name); number.has_value() && *number != size) {
      throw Misfit{fmt::format("{} would be {}", name, size)};
    }
  }

  void read_operands() {
    for (const std::string_view port : {"q", "k", "v"}) {
      if (find(tensors_, port) == nullptr) {
        throw Misfit{fmt::format("the tensor {} is missing", port)};
      }
    }
    const std::optional<std::int64_t> none;
    const Letters q = letters("q", chosen("heads"), chosen("d"));
    const Letters k = letters("k", chosen("kv_heads"), q.at('d'));
    const Letters v = letters("v", k.at('h'), none);
    require_same("channels", "q", q.at('d'), "k", k.at('d'));
    require_same("heads", "k", k.at('h'), "v", v.at('h'));
    require_same(is_ragged() ? "tokens" : "keys", "k", keys_of(k), "v", keys_of(v));
    if (k.at('h') == 0 || q.at('h') % k.at('h') != 0) {
      throw Misfit{fmt::format("{} heads of q cannot share {} of k", q.at('h'), k.at('h'))};
    }
    if (!is_ragged()) {
      require_same("sequences", "q", q.at('b'), "k", k.at('b'));
      require_same("sequences", "k", k.at('b'), "v", v.at('b'));
    }
    queries_ = keys_of(q);
    keys_ = keys_of(k);
    op::AttentionParams& p = reading_.p;
    p.batches = is_ragged() ? 1 : q.at('b');
    p.heads = q.at('h');
    p.kv_heads = k.at('h');
    p.d = q.at('d');
    p.dv = v.at('d');
  }

  /// Positions, or tokens of all sequences.
  [[nodiscard]] std::int64_t keys_of(const Letters& sizes) const { return sizes.at(is_ragged() ? 't' : 's'); }

  /// Of q_lengths or kv_lengths.
  [[nodiscard]] SequenceLengths lengths(std::string_view port, std::int64_t tokens) const {
    const data::FileTensor* tensor = find(tensors_, port);
    const bool is_given = tensor != nullptr && tensor->elements() != 0;
    return !is_given     ? SequenceLengths()
           : is_ragged() ? lengths_of_tokens(port, *tensor, tokens)
                         : lengths_of_rows(port, *tensor, reading_.p.batches, tokens);
  }

  void read_lengths() {
    SequenceLengths of_queries = lengths("q_lengths", queries_), of_keys = lengths("kv_lengths", keys_);
    if (queries_ == keys_ && of_keys.lengths.empty()) {
      of_keys = of_queries;
    } else if (queries_ == keys_ && of_queries.lengths.empty()) {
      of_queries = of_keys;
    }
    reading_.q_lengths = of_queries.lengths;
    reading_.kv_lengths = of_keys.lengths;
    reading_.queries_left = of_queries.left;
    reading_.keys_left = of_keys.left;
    if (!is_ragged()) {
      for (const auto* lengths : {&reading_.q_lengths, &reading_.kv_lengths}) {
        if (!lengths->empty() && std::cmp_not_equal(lengths->size(), reading_.p.batches)) {
          throw Misfit{
              fmt::format("q has {} sequences, and {} lengths are given", reading_.p.batches, lengths->size())};
        }
      }
      return;
    }
    if (reading_.q_lengths.size() != reading_.kv_lengths.size()) {
      throw Misfit{fmt::format("{} lengths of queries are given, and {} of keys", reading_.q_lengths.size(),
                               reading_.kv_lengths.size())};
    }
    if (!reading_.q_lengths.empty()) {
      reading_.p.batches = static_cast<std::int64_t>(reading_.q_lengths.size());
      queries_ = std::max<std::int64_t>(1, std::ranges::max(reading_.q_lengths));
      keys_ = std::max<std::int64_t>(1, std::ranges::max(reading_.kv_lengths));
    }
  }

  /// Sizes and layout of the case.
  void settle() {
    op::AttentionParams& p = reading_.p;
    p.sq = queries_;
    p.sk = keys_;
    p.layout = is_ragged() ? "bshd" : reading_.layout;
    const std::array sizes = {p.batches, p.heads, p.kv_heads, p.sq, p.sk, p.d, p.dv};
    reading_.params = chosen_;
    reading_.params["layout"] = p.layout;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      require_chosen(kSizes[i], sizes[i]);
      reading_.params[std::string(kSizes[i])] = sizes[i];
    }
    if (p.kv_heads == p.heads) {
      reading_.params["kv_heads"] = std::int64_t{0};
    }
    if (p.dv == p.d) {
      reading_.params["dv"] = std::int64_t{0};
    }
  }

  [[nodiscard]] Dimensions shape_of(const NamedTensor& named) {
    const op::AttentionParams& p = reading_.p;
    const std::string_view port = named.port;
    if (has_heads(port)) {
      require_as_expected(port);
      const std::int64_t heads = is_of_keys(port) ? p.kv_heads : p.heads, length = is_of_keys(port) ? p.sk : p.sq;
      const std::int64_t width = is_of_values(port) ? p.dv : p.d;
      return p.layout == "bhsd"   ? Dimensions{p.batches * heads, length, width}
             : p.layout == "sbhd" ? Dimensions{length, p.batches * heads * width}
                                  : Dimensions{p.batches, length, heads * width};
    }
    if (is_statistic(port)) {
      read_statistic(named);
      return {p.batches * p.heads, p.sq};
    }
    if (is_shared_bias(named, p)) {
      return {p.heads, p.sq, p.sk};
    }
    const bool is_lengths = port == "q_lengths" || port == "kv_lengths";
    return is_lengths && reading_.has_lengths() ? Dimensions{p.batches} : named.tensor.shape;
  }

  /// Whether a tensor besides q, k and v has the sizes that those say.
  void require_as_expected(std::string_view port) const {
    const op::AttentionParams& p = reading_.p;
    const std::int64_t heads = is_of_keys(port) ? p.kv_heads : p.heads;
    const std::string_view like = is_of_keys(port) ? "k" : "q";
    const Letters sizes = letters(port, heads, std::nullopt), of = letters(like, heads, p.d);
    require_same("positions", port, keys_of(sizes), like, keys_of(of));
    require_same("heads", port, sizes.at('h'), like, heads);
    require_same("channels", port, sizes.at('d'), is_of_values(port) ? "v" : "q", is_of_values(port) ? p.dv : p.d);
    if (!is_ragged()) {
      require_same("sequences", port, sizes.at('b'), like, p.batches);
    }
  }

  void read_statistic(const NamedTensor& named) {
    const op::AttentionParams& p = reading_.p;
    Dimensions shape = named.tensor.shape;
    const std::size_t dims = is_ragged() ? 2 : 3;
    while (shape.size() > dims && shape.back() == 1) {
      shape.pop_back();
    }
    const std::int64_t tokens = find(tensors_, "q")->shape.front();
    const Dimensions natural = is_ragged() ? Dimensions{tokens, p.heads} : Dimensions{p.batches, p.heads, p.sq};
    const Dimensions other = is_ragged() ? Dimensions{p.heads, tokens} : Dimensions{p.batches, p.sq, p.heads};
    const bool is_folded = !is_ragged() && shape == Dimensions{p.batches * p.heads, p.sq};
    if (shape != natural && shape != other && !is_folded) {
      throw Misfit{
          fmt::format("{} is {}, where {} are expected", named.port, spelled(named.tensor.shape), spelled(natural))};
    }
    reading_.by_position = shape != natural && !is_folded;
  }

  const ChosenParams& chosen_;
  const std::vector<NamedTensor>& tensors_;
  std::int64_t queries_ = 0, keys_ = 0;  ///< of a sequence; of thd first tokens
  AttentionReading reading_;
};

/// "; as LAYOUT WHY" of each, or once if all say the same.
std::string in_words(const std::vector<std::string>& layouts, const std::vector<std::string>& misfits) {
  if (!misfits.empty() && std::ranges::count(misfits, misfits.front()) == std::ssize(misfits)) {
    return "; " + misfits.front();
  }
  std::string words;
  for (std::size_t i = 0; i < misfits.size(); ++i) {
    words += fmt::format("; as {} {}", layouts[i], misfits[i]);
  }
  return words;
}

op::AttentionParams params_of(const op::Op& op, const ChosenParams& chosen) {
  op::Params params;
  for (const op::Field& field : op.fields()) {
    const auto found = chosen.find(field.name);
    params.push_back(found == chosen.end() ? field.fallback : found->second);
  }
  auto p = op::from_params<op::AttentionParams>(params);
  p.kv_heads = p.key_heads();
  p.dv = p.value_channels();
  return p;
}

}  // namespace

bool is_of_keys(std::string_view port) {
  return port == "k" || port == "v" || port == "dk" || port == "dv";
}

bool is_of_values(std::string_view port) {
  return port == "v" || port == "o" || port == "do" || port == "dv";
}

std::vector<AttentionReading> attention_readings(const op::Op& op, const ChosenParams& chosen,
                                                 const std::vector<NamedTensor>& tensors) {
  const data::FileTensor* q = find(tensors, "q");
  const auto packing = chosen.find("packing");
  const bool is_packed = packing != chosen.end() && std::get<core::InternedString>(packing->second) != "none";
  const bool all_chosen = std::ranges::all_of(std::array{"layout", "batches", "sq", "sk"},
                                              [&](const char* name) { return chosen.contains(name); });
  constexpr std::size_t kFewest = 3, kMost = 4;
  if (!op.name.starts_with("attention_") || q == nullptr || q->shape.size() < kFewest || is_packed || all_chosen) {
    return {};
  }
  std::vector<AttentionReading> all;
  std::vector<std::string> layouts, misfits;
  for (const std::string_view layout : kLayouts) {
    const auto told = chosen.find("layout");
    if (told != chosen.end() && std::get<core::InternedString>(told->second) != layout) {
      continue;
    }
    try {
      AttentionReading& reading = all.emplace_back(Reader(layout, chosen, tensors).read());
      reading.p = params_of(op, reading.params);
    } catch (const Misfit& misfit) {
      layouts.emplace_back(layout);
      misfits.push_back(misfit.why);
    }
  }
  if (all.empty() && q->shape.size() <= kMost + 1) {
    throw core::UsageError(
        fmt::format("these tensors do not fit {}: q is {}{}", op.name, spelled(q->shape), in_words(layouts, misfits)));
  }
  // Statistics in the usual order are the likelier ones.
  std::ranges::stable_sort(all, {}, &AttentionReading::by_position);
  return all;
}

}  // namespace numcheck::diagnose
