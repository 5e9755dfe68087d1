#include "report/metric_members.hpp"

namespace numcheck::report {

using namespace schema;

const Members<metric::ErrorNorms>& norm_members() {
  using metric::ErrorNorms;
  static const Members<ErrorNorms> members = {
      {"max_abs", real("largest |e|, e = got - reference"), &at<&ErrorNorms::max_abs>},
      {"max_rel", real("largest |e| / |y|"), &at<&ErrorNorms::max_rel>},
      {"l1", real("sum of |e|"), &at<&ErrorNorms::l1>},
      {"l2", real("square root of the sum of e^2"), &at<&ErrorNorms::l2>},
      {"linf", real("largest |e|"), &at<&ErrorNorms::linf>},
      {"rel_l2", real("Frobenius-relative error |e|_2 / |y|_2"), &at<&ErrorNorms::rel_l2>},
      {"rms", real("root mean square of e"), &at<&ErrorNorms::rms>},
      {"mean_signed", real("mean of e"), &at<&ErrorNorms::mean_signed>},
      {"nmse", real("sum of e^2 / sum of y^2"), &at<&ErrorNorms::nmse>},
      {"sqnr_db", real("signal to quantisation noise ratio in dB"), &at<&ErrorNorms::sqnr_db>},
      {"cosine", real("cosine of the angle between got and reference"), &at<&ErrorNorms::cosine>}};
  return members;
}

const Members<metric::Statistics>& statistics_members() {
  using metric::Statistics;
  static const Members<Statistics> members = {
      {"elements", count("elements that were compared"), &at<&Statistics::elements>},
      {"finite", count("of those, finite in the output and in the reference"), &at<&Statistics::finite>},
      {"nonfinite_mismatch", count("elements that are NaN or infinite where the reference is not, or the reverse"),
       &at<&Statistics::nonfinite_mismatch>},
      {"judged",
       real("share of the compared elements that are judged; the others are unknown, undetermined or "
            "order_dependent"),
       [](const Statistics& s) { return number(s.judged()); }},
      {"unknown", count("elements not judged because the bound of their error is NaN or infinite"),
       &at<&Statistics::unknown>},
      {"undetermined",
       count("elements not judged because intermediate results may overflow: any number is within the "
             "bound"),
       &at<&Statistics::undetermined>},
      {"order_dependent",
       count("elements not judged because they are NaN or infinite, which may depend on the order of the partial sums"),
       &at<&Statistics::order_dependent>},
      {"unsampled", count("elements that were not compared because they are not part of the sample"),
       &at<&Statistics::unsampled>},
      {"poison", count("elements that were not written"), &at<&Statistics::poison>},
      {"zeros", count("elements that are zero"), &at<&Statistics::zeros_got>},
      {"exact_mismatch", count("elements other than the rounded reference, bit for bit"),
       &at<&Statistics::exact_mismatch>},
      {"rounding_elements", count("elements whose rounding G4 judges"), &at<&Statistics::rounding_elements>},
      {"rms_expected", real("root mean square of the reference"), &at<&Statistics::rms_expected>},
      {"effective_bits", real("significant bits of a format whose rounding alone would give this relative L2"),
       &at<&Statistics::effective_bits>},
      {"max_ulp", real("largest error in units of the last place of the output"), &at<&Statistics::max_ulp>},
      {"mean_ulp", real("mean error in units of the last place of the output"), &at<&Statistics::mean_ulp>},
      {"max_over_bound", real("G1: largest |e| / bound"), &at<&Statistics::max_over_bound>},
      {"z_rms", real("G2: root mean square of e / sqrt(V), V the predicted second moment"), &at<&Statistics::z_rms>},
      {"z_q999", real("G2: 99.9 % quantile of |e| / sqrt(V)"), &at<&Statistics::z_q999>},
      {"z_max", real("G2: largest |e| / sqrt(V)"), &at<&Statistics::z_max>},
      {"slope", real("G3: slope of e on the value"), &at<&Statistics::slope>},
      {"slope_se", real("standard error of the slope"), &at<&Statistics::slope_se>},
      {"intercept", real("mean of e, in units of the root mean square of the reference"), &at<&Statistics::intercept>},
      {"toward_zero", real("share of the elements with an error that err toward zero, 0 to 1"),
       &at<&Statistics::toward_zero>},
      {"rounding_ratio", real("G4: noise of the output rounding, relative to uniform noise"),
       &at<&Statistics::rounding_ratio>},
      {"rounding_ratio_perfect", real("the same of one perfect rounding of the reference"),
       &at<&Statistics::rounding_ratio_perfect>},
      {"rounding_sd", real("standard deviation of that noise over the elements"), &at<&Statistics::rounding_sd>},
      {"rounding_arith", real("part of the ratio that arithmetic errors may cause"), &at<&Statistics::rounding_arith>},
      {"max_over_half_ulp", real("G4: largest |e| over half an ulp and the error allowed before rounding"),
       &at<&Statistics::max_over_half_ulp>},
      {"expected_constant",
       flag("the same result is expected everywhere: reference values are equal, or all are stored as the same number"),
       &at<&Statistics::expected_constant>},
      {"ulp_histogram",
       described(list_of(count("elements")),
                 "elements by error: 0, (0,1/2], (1/2,1], (1,2], (2,4], ... in output ulps"),
       &at<&Statistics::ulp_histogram>},
      {"z_histogram",
       described(
           list_of(count("elements")),
           "elements by |z|, the error in predicted standard deviations: [0,1/2), [1/2,1), ... [7/2,4), [4,8), 8 or "
           "more"),
       &at<&Statistics::z_histogram>}};
  return members;
}

}  // namespace numcheck::report
