#include "tolerance/vacuity.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/parallel.hpp"
#include "metric/repeats.hpp"
#include "tolerance/fakes.hpp"
#include "tolerance/judge.hpp"

namespace numcheck::tolerance {
namespace {

constexpr std::uint64_t kFewestForChance = 32;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// What the gates say about a fake.
struct Opinion {
  metric::Statistics statistics;
  std::string failing;  ///< name of the first failing gate; empty if none fails
};

/// Which of the ascending indices are in one of the ranges; empty if there are no ranges.
std::vector<bool> are_in(std::span<const op::OutputValues::Range> ranges, std::span<const std::int64_t> indices) {
  std::vector<bool> in(ranges.empty() ? 0 : indices.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto after = std::ranges::upper_bound(ranges, indices[i], {}, &op::OutputValues::Range::begin);
    in[i] = after != ranges.begin() && indices[i] < std::prev(after)->end;
  }
  return in;
}

class Certifier {
 public:
  Certifier(const metric::CompareInput& input, std::span<const WrongFormula> formulas)
      : input_(input), formulas_(formulas), data_(gather(input)), bits_decide_(do_bits_decide()) {
    data_.outside = are_in(input.outside, data_.indices);
    if (core::dtype_info(data_.port.dtype).storage_bytes < 4) {
      repeats_ = metric::repeats_of(data_.expected);
    }
  }

  [[nodiscard]] Certificate run() const {
    if (data_.expected.empty()) {
      return {};
    }
    std::vector<std::function<Fake()>> makers = {
        [this] { return conclude("zeros", fake_zeros(data_)); },
        [this] { return mean(); },
        [this] { return conclude("sign_flipped", fake_sign_flipped(data_)); },
        [this] {
          return data_.transposed.empty() ? dropped("transposed", "only a sample of the output is referenced")
                                          : conclude("transposed", fake_transposed(data_));
        },
        [this] { return conclude("tile_zeroed", fake_tile_zeroed(data_, *input_.port)); },
        [this] { return missing_tail(); },
        [this] { return conclude_random("noise", fake_noise(data_)); },
        [this] { return enlarged(); },
    };
    makers.emplace_back([this] { return conclude("constant", fake_constant(data_)); });
    if (!core::is_integer(data_.port.dtype)) {
      makers.emplace_back([this] { return conclude("nan", fake_everywhere(data_, kNan)); });
      makers.emplace_back([this] { return conclude("infinity", fake_everywhere(data_, kInfinity)); });
    }
    if (!input_.model->exact) {
      makers.emplace_back([this] { return coarser(); });
    }
    Certificate certificate;
    certificate.fakes.resize(makers.size());
    core::parallel_for(makers.size(), [&](std::size_t i) { certificate.fakes[i] = makers[i](); });
    std::ranges::move(wrong_formulas().fakes, std::back_inserter(certificate.fakes));
    return certificate;
  }

  [[nodiscard]] Certificate wrong_formulas() const {
    Certificate certificate;
    certificate.fakes.resize(formulas_.size());
    core::parallel_for(formulas_.size(), [&](std::size_t i) { certificate.fakes[i] = conclude_formula(formulas_[i]); });
    return certificate;
  }

  [[nodiscard]] Opinion judge_values(FakeValues values) const {
    if (bits_decide_ && is_other_number(values)) {
      return opinion_of({.elements = values.size(), .finite = values.size(), .exact_mismatch = 1});
    }
    const core::Dtype dtype = data_.port.dtype;
    for (double& value : values) {
      value *= input_.model->output_scale;
    }
    std::vector<std::byte> bytes(data_.port.extent_bytes());
    const bool clamps = core::dtype_info(dtype).storage_bytes == 1;
    core::encode(values, dtype, bytes, clamps ? core::Overflow::saturate : core::Overflow::ieee);
    metric::CompareInput fake;
    fake.port = &data_.port;
    fake.got = bytes;
    fake.expected = data_.expected;
    fake.magnitude = data_.magnitude;
    fake.deviation = data_.deviation;
    fake.model = input_.model;
    fake.known_repeats = repeats_;
    return opinion_of(metric::compare(fake));
  }

  [[nodiscard]] Opinion opinion_of(metric::Statistics statistics) const {
    Opinion opinion{std::move(statistics), {}};
    for (const Criterion& criterion : judge(opinion.statistics, *input_.model, {}, {})) {
      if (!criterion.ok) {
        opinion.failing = criterion.name;
        break;
      }
    }
    return opinion;
  }

  /// Finite when it is stored.
  [[nodiscard]] bool is_stored_finite(std::span<const double> values) const {
    const core::DtypeInfo& format = core::dtype_info(data_.port.dtype);
    const double most = format.storage_bytes == 1 ? std::numeric_limits<double>::max() : format.max_finite;
    bool finite = true;
    for (const double value : values) {
      finite &= std::fabs(value) <= most;
    }
    return finite;
  }

  /// Whether a finite fake of an output that is defined bit for bit fails as soon as one element is stored as another number.
  [[nodiscard]] bool do_bits_decide() const {
    return input_.model->exact && input_.model->output_scale == 1 && !core::is_integer(data_.port.dtype) &&
           is_stored_finite(data_.expected);
  }

  /// Whether all values are finite and one is not what is expected. False if that is not certain.
  [[nodiscard]] bool is_other_number(std::span<const double> values) const {
    const core::Dtype dtype = data_.port.dtype;
    const bool clamps = core::dtype_info(dtype).storage_bytes == 1;
    const auto stored = [&](double value) {
      return core::round_to(value, dtype, clamps ? core::Overflow::saturate : core::Overflow::ieee);
    };
    const auto is_other = [&](double value, double y) { return value != y && stored(value) != stored(y); };
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (is_other(values[i], data_.expected[i])) {
        return is_stored_finite(values);
      }
    }
    return false;
  }

  [[nodiscard]] static Fake dropped(std::string name, std::string why) {
    return {std::move(name), Fake::Outcome::dropped, std::move(why)};
  }

  /// Zeros and noise are not approximations of anything: they may be dropped only if they are right.
  [[nodiscard]] static bool is_subtle(const std::string& name) {
    return name != "zeros" && name != "sign_flipped" && name != "noise";
  }

  [[nodiscard]] Fake conclude(std::string name, const Opinion& opinion, const std::string& prefix) const {
    const bool leaves_out = !input_.outside.empty();  // these may be the elements that are not judged
    const metric::Statistics& s = opinion.statistics;
    if (!opinion.failing.empty()) {
      return {std::move(name), Fake::Outcome::rejected, prefix + opinion.failing};
    }
    if (s.exact_mismatch == 0 && (s.unjudged() == 0 || leaves_out)) {
      return dropped(std::move(name), "equals the reference");
    }
    if (s.finite != 0 && s.z_rms <= 1 && is_subtle(name)) {
      return {std::move(name), Fake::Outcome::dropped, "within the predicted error", true};
    }
    return {std::move(name), Fake::Outcome::accepted, prefix + "no gate fails"};
  }

  [[nodiscard]] Fake conclude(std::string name, FakeValues values) const {
    return conclude(std::move(name), judge_values(std::move(values)), {});
  }

  /// Fakes whose distance from the reference is a matter of chance in a single element.
  [[nodiscard]] Fake conclude_random(std::string name, FakeValues values) const {
    const Opinion opinion = judge_values(std::move(values));
    if (opinion.failing.empty() && opinion.statistics.finite < kFewestForChance && opinion.statistics.unjudged() == 0) {
      return dropped(std::move(name), "too few outputs to tell");
    }
    return conclude(std::move(name), opinion, {});
  }

  /// Beside elements that are left to the implementation, one number everywhere else may be right.
  [[nodiscard]] Fake mean() const {
    Fake fake = conclude("mean", fake_mean(data_));
    const auto judged = std::ranges::count(data_.outside, false);
    fake.within_error |= fake.outcome == Fake::Outcome::dropped && judged > 1;
    return fake;
  }

  /// Whether it matters is decided with the other outputs: verdict::doubt_about_size.
  [[nodiscard]] Fake enlarged() const {
    constexpr double kTenth = 0.1;
    const double steps = 4 * core::dtype_info(data_.port.dtype).unit_roundoff;  // two of them
    const double factor = 1 + std::max(kTenth, steps);
    Fake fake = conclude_random("enlarged", fake_enlarged(data_, factor));
    if (fake.outcome == Fake::Outcome::accepted || fake.within_error) {
      fake = {fake.name, Fake::Outcome::dropped, fmt::format("{:g} y is within the predicted error", factor), true};
    }
    return fake;
  }

  [[nodiscard]] Fake conclude_formula(const WrongFormula& formula) const {
    if (formula.values.size() != data_.expected.size()) {
      throw core::InternalError("certify: the formula " + formula.name + " does not belong to certificate_sample()");
    }
    const std::string failing = judge_values(formula.values).failing;
    return failing.empty() ? Fake{formula.name, Fake::Outcome::not_told, formula.text}
                           : Fake{formula.name, Fake::Outcome::rejected, failing};
  }

  [[nodiscard]] Fake missing_tail() const {
    const double k = input_.model->reduction;
    if (k < 2) {
      return dropped("last_k_block", "the sum has one term");
    }
    if (input_.missing_tail.empty()) {
      constexpr double kBlock = 64;
      return conclude_random("last_k_block", fake_missing_tail(data_, std::min(kBlock, std::ceil(k / 2)) / k));
    }
    if (input_.missing_tail.size() != data_.expected.size()) {
      throw core::InternalError("certify: missing_tail does not belong to certificate_sample()");
    }
    return conclude_random("last_k_block", FakeValues(input_.missing_tail.begin(), input_.missing_tail.end()));
  }

  [[nodiscard]] Fake coarser() const {
    constexpr std::array kCandidates = {core::Dtype::tf32, core::Dtype::bf16, core::Dtype::fp8_e4m3,
                                        core::Dtype::fp8_e5m2};
    bool enough = true;
    for (const core::Dtype candidate : kCandidates) {
      const core::DtypeInfo& info = core::dtype_info(candidate);
      if (info.fraction_bits >= core::dtype_info(data_.port.dtype).fraction_bits) {
        continue;
      }
      const Opinion opinion = judge_values(fake_coarser(data_, info.fraction_bits));
      enough = has_rms(opinion.statistics);
      if (enough && opinion.statistics.z_rms > 2 * input_.model->kappa) {
        return conclude("coarser_format", opinion, fmt::format("{}: ", info.name));
      }
    }
    return dropped("coarser_format", enough ? "no format is coarse enough" : "too few outputs to tell");
  }

  const metric::CompareInput& input_;
  std::span<const WrongFormula> formulas_;
  CertificateData data_;
  bool bits_decide_;
  std::optional<double> repeats_;  ///< of what is expected, the same for every fake; unset: not needed
};

}  // namespace

std::string Certificate::vacuous_with() const {
  const auto accepted = std::ranges::find(fakes, Fake::Outcome::accepted, &Fake::outcome);
  return accepted == fakes.end() ? std::string() : accepted->name;
}

bool Certificate::is_constant_within_error() const {
  const auto is = [this](std::string_view name, auto&& what) {
    const auto found = std::ranges::find(fakes, name, &Fake::name);
    return found != fakes.end() && what(*found);
  };
  return is("mean", [](const Fake& fake) { return fake.within_error; }) &&
         is("zeros", [](const Fake& fake) { return fake.outcome == Fake::Outcome::rejected; });
}

Certificate certify(const metric::CompareInput& input, std::span<const WrongFormula> formulas) {
  return Certifier(input, formulas).run();
}

Certificate certify_formulas(const metric::CompareInput& input, std::span<const WrongFormula> formulas) {
  return formulas.empty() ? Certificate() : Certifier(input, formulas).wrong_formulas();
}

}  // namespace numcheck::tolerance
