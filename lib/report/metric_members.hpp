// The members of an output's metrics: norms of its error, and statistics that are judged or shown.
#pragma once

#include "metric/compare.hpp"
#include "report/members.hpp"

namespace numcheck::report {

[[nodiscard]] const Members<metric::ErrorNorms>& norm_members();
/// Written together with the norms of the arithmetic error.
[[nodiscard]] const Members<metric::Statistics>& statistics_members();

}  // namespace numcheck::report
