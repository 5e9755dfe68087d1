#include "report/metric_members.hpp"

#include <optional>
#include <string>

namespace numcheck::report {

using namespace schema;

namespace {

using metric::ErrorNorms;
using metric::Statistics;
using metric::TermStatistics;
using nlohmann::json;

constexpr const char* kOurs = "";  ///< defined by this program
constexpr const char* kValue = "unit of the output";
constexpr const char* kHigham = "Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapters 1 and 3";

/// "formula [unit]; source": what the schema describes and `explain metrics` lists.
std::string metric(const std::string& formula, const char* unit, const char* source) {
  return formula + " [" + unit + "]" + (*source == '\0' ? "" : std::string("; source: ") + source);
}

json measure(const char* formula, const char* unit, const char* source = kOurs) {
  return real(metric(formula, unit, source).c_str());
}

json optional_measure(const char* formula, const char* unit, const char* source = kOurs) {
  return real_or_null(metric(formula, unit, source).c_str());
}

json elements(const char* which) {
  return count(metric(which, "elements", kOurs).c_str());
}

json histogram(const char* bins) {
  return described(list_of(count("elements")), metric(bins, "elements per bin", kOurs).c_str());
}

json number_or_null(const std::optional<double>& value) {
  return value ? number(*value) : json();
}

template <auto kField>
json of_terms(const Statistics& s) {
  return s.terms ? at<kField>(*s.terms) : json();
}

}  // namespace

const Members<ErrorNorms>& norm_members() {
  static const Members<ErrorNorms> members = {
      {"max_abs", measure("largest |e|, e = got - y, y the reference", kValue, kHigham), &at<&ErrorNorms::max_abs>},
      {"max_rel", measure("largest |e| / |y|", "1", kHigham), &at<&ErrorNorms::max_rel>},
      {"l1", measure("sum of |e|", kValue, kHigham), &at<&ErrorNorms::l1>},
      {"l2", measure("square root of the sum of e^2", kValue, kHigham), &at<&ErrorNorms::l2>},
      {"linf", measure("largest |e|", kValue, kHigham), &at<&ErrorNorms::linf>},
      {"rel_l2", measure("|e|_2 / |y|_2, relative to the Frobenius norm", "1", kHigham), &at<&ErrorNorms::rel_l2>},
      {"rms", measure("square root of the mean of e^2", kValue), &at<&ErrorNorms::rms>},
      {"mean_signed", measure("mean of e", kValue), &at<&ErrorNorms::mean_signed>},
      {"nmse", measure("sum of e^2 / sum of y^2", "1"), &at<&ErrorNorms::nmse>},
      {"sqnr_db",
       measure("-10 log10(nmse), the signal to quantisation noise ratio", "dB",
               "Oppenheim and Schafer, Discrete-Time Signal Processing, section 4.8"),
       &at<&ErrorNorms::sqnr_db>},
      {"cosine", measure("got . y / (|got|_2 |y|_2)", "1"), &at<&ErrorNorms::cosine>}};
  return members;
}

namespace {

const Members<Statistics>& counts() {
  static const Members<Statistics> members = {
      {"elements", elements("elements that were compared"), &at<&Statistics::elements>},
      {"finite", elements("of those, finite in the output and in the reference"), &at<&Statistics::finite>},
      {"nonfinite_mismatch", elements("elements that are NaN or infinite where the reference is not, or the reverse"),
       &at<&Statistics::nonfinite_mismatch>},
      {"judged",
       measure("share of the compared elements that are judged; the others are unknown, undetermined or "
               "order_dependent",
               "1"),
       [](const Statistics& s) { return number(s.judged()); }},
      {"unknown", elements("elements not judged because the bound of their error is NaN or infinite"),
       &at<&Statistics::unknown>},
      {"undetermined",
       elements(
           "elements not judged because any number that the output has is within their bound: intermediate results "
           "may overflow, or nearly cancel"),
       &at<&Statistics::undetermined>},
      {"order_dependent",
       elements(
           "elements not judged because they are NaN or infinite, which may depend on the order of the partial sums"),
       &at<&Statistics::order_dependent>},
      {"outside",
       elements("elements that the op leaves to the implementation, as those of padding: any number is right"),
       &at<&Statistics::outside>},
      {"unsampled", elements("elements that were not compared because they are not part of the sample"),
       &at<&Statistics::unsampled>},
      {"poison", elements("elements that were not written"), &at<&Statistics::poison>},
      {"zeros", elements("elements that are zero"), &at<&Statistics::zeros_got>},
      {"exact_mismatch", elements("elements other than the rounded reference RN(y), bit for bit"),
       &at<&Statistics::exact_mismatch>},
      {"rounding_elements", elements("elements whose V before output rounding is at most (ulp(y) / 16)^2"),
       &at<&Statistics::rounding_elements>}};
  return members;
}

const Members<Statistics>& error_members() {
  static const Members<Statistics> members = {
      {"rms_expected", measure("square root of the mean of y^2", kValue), &at<&Statistics::rms_expected>},
      {"effective_bits",
       measure(
           "-log2(rho / (0.425 sqrt(n))): significant bits of a format whose rounding alone would give this error. Of "
           "products a b in FP32, rho is the root mean square of e / sqrt(sum (a b)^2), and n how many of the two "
           "operands have numbers that shorter formats do not hold; NaN where FP32 does not hold these roots. "
           "Elsewhere rho is rel_l2, and n is 1: of terms of one sign, whose errors cancel in the sum while the terms "
           "do "
           "not, these are more bits than the format has",
           "bits", "0.425 2^-p is the relative rms error of rounding normal variables to p bits"),
       &at<&Statistics::effective_bits>},
      {"max_ulp", measure("largest |e| / ulp(y): large where y is small by cancellation", "ulp of the output", kHigham),
       &at<&Statistics::max_ulp>},
      {"mean_ulp", measure("mean of |e| / ulp(y)", "ulp of the output", kHigham), &at<&Statistics::mean_ulp>},
      {"max_ulp_at_rms",
       optional_measure("largest |e| / ulp(rms_expected); null where blocks of the output have scales of their own",
                        "ulp of the output"),
       [](const Statistics& s) { return number_or_null(s.max_ulp_at_rms); }},
      {"max_ulp_at_magnitude",
       optional_measure(
           "largest |e| / ulp(A), A the sum of the magnitudes of the terms of y, which te-numcheck explain metrics "
           "has for every operation; null where y is not a sum",
           "ulp of the output", kHigham),
       &of_terms<&TermStatistics::max_ulp>},
      {"backward_error",
       optional_measure("componentwise backward error, largest |e| / A, infinite where A is 0 because the terms "
                        "underflow; null as for max_ulp_at_magnitude",
                        "1", "Oettli and Prager, Numerische Mathematik 6, 1964"),
       &of_terms<&TermStatistics::backward_error>},
      {"backward_error_scaled",
       optional_measure("largest |e| / (u sqrt(k) A), u the unit roundoff of the output's format and k the number of "
                        "terms; null as for max_ulp_at_magnitude",
                        "1", "Higham and Mary, SIAM Journal on Scientific Computing 41, 2019, A2815"),
       &of_terms<&TermStatistics::backward_error_scaled>},
      {"condition_histogram",
       {{"description", metric("elements with y other than 0 by the condition A / |y|: up to 10, up to 100, ... up to "
                               "10^6, more; about 2^16 of larger outputs; null as for max_ulp_at_magnitude",
                               "elements per bin", kHigham)},
        {"anyOf", json::array({{{"type", "null"}}, list_of(count("elements"))})}},
       &of_terms<&TermStatistics::condition_histogram>},
      {"flip_rate",
       optional_measure("exact_mismatch / elements, NaN and infinities included, of 16- and 8-bit "
                        "floating-point outputs; else null",
                        "1"),
       [](const Statistics& s) { return number_or_null(s.flip_rate); }},
      {"flip_rate_predicted",
       optional_measure(
           "the same as predicted, mean of Q(d / sqrt(V)) over the distances d from y to the boundaries of the "
           "numbers that are rounded to RN(y), V the predicted second moment of e before output rounding and "
           "Q the tail of the normal distribution: an upper estimate, as V is",
           "1"),
       [](const Statistics& s) { return number_or_null(s.flip_rate_predicted); }},
      {"residual_distance",
       optional_measure("largest difference between the distribution functions of r(got) and of r(RN(y)), "
                        "r(x) = sign(y) (x - y) / ulp(y), in steps of 1/64: 0 of perfect rounding, 1/2 of truncation; "
                        "y other than 0, about 2^14 elements of larger outputs; "
                        "null as for flip_rate",
                        "1", "Smirnov, Annals of Mathematical Statistics 19, 1948, 279"),
       [](const Statistics& s) { return number_or_null(s.residual_distance); }},
      {"ulp_histogram", histogram("elements by |e| / ulp(y): 0, (0,1/2], (1/2,1], (1,2], (2,4], ..."),
       &at<&Statistics::ulp_histogram>}};
  return members;
}

const Members<Statistics>& gate_members() {
  static const Members<Statistics> members = {
      {"max_over_bound", measure("G1: largest |e| / B, B the bound of the error model", "1"),
       &at<&Statistics::max_over_bound>},
      {"z_rms",
       measure("G2: root mean square of z = e / sqrt(V) of judged elements, V the predicted second moment of e", "1"),
       &at<&Statistics::z_rms>},
      {"z_q999", measure("G2: 99.9 % quantile of |z|", "1"), &at<&Statistics::z_q999>},
      {"z_max", measure("G2: largest |z|", "1"), &at<&Statistics::z_max>},
      {"slope", measure("G3: slope of e on y, weighted with 1 / V", "1"), &at<&Statistics::slope>},
      {"slope_se", measure("standard error of the slope, from the scatter of rows and columns", "1"),
       &at<&Statistics::slope_se>},
      {"intercept",
       measure("mean_signed / rms_expected; like e against the reference of the operands as "
               "the mode converts them, so what the conversion does is not in it",
               "1"),
       &at<&Statistics::intercept>},
      {"toward_zero",
       measure("share of the elements with an error that err toward zero, 0 to 1: of the "
               "arithmetic and of storing the output; operands that are truncated show in total_error",
               "1"),
       &at<&Statistics::toward_zero>},
      {"rounding_ratio",
       measure("12 times the mean of (e / ulp(y))^2 over rounding_elements, which is 1 for uniform noise", "1"),
       &at<&Statistics::rounding_ratio>},
      {"rounding_ratio_perfect", measure("the same of RN(y)", "1"), &at<&Statistics::rounding_ratio_perfect>},
      {"rounding_sd", measure("standard deviation of 12 (e / ulp(y))^2 of RN(y) over the elements", "1"),
       &at<&Statistics::rounding_sd>},
      {"rounding_arith", measure("mean of V before output rounding / ulp(y)^2: what arithmetic errors may add", "1"),
       &at<&Statistics::rounding_arith>},
      {"max_over_half_ulp", measure("G4: largest |e| over half an ulp and the error allowed before rounding", "1"),
       &at<&Statistics::max_over_half_ulp>},
      {"expected_constant",
       flag("the same result is expected everywhere: reference values are equal, or all are stored as the same number"),
       &at<&Statistics::expected_constant>},
      {"z_histogram", histogram("judged elements by |z|: [0,1/2), [1/2,1), ... [7/2,4), [4,8), 8 or more"),
       &at<&Statistics::z_histogram>}};
  return members;
}

}  // namespace

const Members<Statistics>& statistics_members() {
  static const Members<Statistics> members = [] {
    Members<Statistics> all = counts();
    all.insert(all.end(), error_members().begin(), error_members().end());
    all.insert(all.end(), gate_members().begin(), gate_members().end());
    return all;
  }();
  return members;
}

}  // namespace numcheck::report
