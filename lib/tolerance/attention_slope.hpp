// What attention's outputs may be too large or too small by as a whole.
#pragma once

#include <string_view>
#include <vector>

#include "model/error_model.hpp"
#include "op/reference.hpp"

namespace numcheck::tolerance {

/// By how much output `o` or `lse` may be too large or too small as a whole: for `o` the mean over queries, weighted with their
/// sum y^2 / V as gate G3 does, of u_P a b + c s + r sqrt(t_S s2), with declared roundings + u |sink| + z G + 4 h + r (d_r a_s + h), and
/// queries of which nothing but their error is left (LostRows); for `lse`, with declared roundings, the ratio of root mean
/// squares of lse and of the errors that scores of a query have in common, with u |sink| + z + d_r a_s + h for these.
///
/// b says how much larger than o what is rounded alike may be, all keys but that of the largest weight p: 1 / (1 - p), or if the
/// values cancel 1 + sqrt(p sum rho^2 / sum o^2), because p |v| <= sqrt(p) rho; 1 where that key's weight is rounded alike as well.
///
/// c s is what the largest weights do that dropout multiplies by a number its format does not hold (attention_error's c): s =
/// max(h, min(1, h max p rho^2 / W)) of a query, as the sum over its channels of o p x of these weights is p^2 x^2 but for what
/// averages out, of sum p^2 x^2 = W; if its values are alike, it is their share h.
[[nodiscard]] double attention_shared_slope(const model::ModelRequest& request, const op::Values& values,
                                            std::string_view port = "o");

/// The same of each query's o alone, without those lost: model::ErrorModel::row_slopes.
[[nodiscard]] std::vector<float> query_slopes(const model::ModelRequest& request, const op::Values& values);

}  // namespace numcheck::tolerance
