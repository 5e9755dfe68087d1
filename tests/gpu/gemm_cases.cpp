#include "gemm_cases.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <sstream>

#include <gtest/gtest.h>

#include "kernels/harness/port_image.hpp"

namespace numcheck::kernels::test {
namespace {

double element(const TestCase& test, std::string_view name, std::int64_t batch, std::int64_t row, std::int64_t col) {
  const op::Port& port = test.port(name);
  std::uint64_t bits = 0;
  std::memcpy(&bits, test.bytes.find(name)->second.data() + harness::element_offset(port, batch, row, col),
              static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes));
  return core::decode(bits, port.dtype);
}

double scalar_or_one(const TestCase& test, std::string_view name) {
  return test.bytes.find(name) == test.bytes.end() ? 1.0 : element(test, name, 0, 0, 0);
}

double activate(const std::string& epilogue, double z) {
  if (epilogue == "relu") {
    return std::max(z, 0.0);
  }
  if (epilogue == "gelu") {
    return z / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (z + 0.044715 * z * z * z)));
  }
  return z;
}

std::string describe(const TestCase& test) {
  std::ostringstream text;
  text << test.c.mode->name;
  for (std::size_t i = 0; i < test.c.params.size(); ++i) {
    text << ' ' << test.c.op->fields()[i].tag << '=' << op::value_text(test.c.params[i]);
  }
  return text.str();
}

bool rounds_partial_sums(const worker::RunReport& report) {
  return std::ranges::any_of(report.details, [](const auto& detail) {
    return detail.first == "reduction" && (detail.second == "output_type" || detail.second == "inplace");
  });
}

}  // namespace

double exact_argument(const TestCase& test, std::int64_t batch, std::int64_t row, std::int64_t col) {
  const auto p = op::from_params<op::GemmParams>(test.c.params);
  double sum = 0;
  for (std::int64_t t = 0; t < p.k; ++t) {
    sum += element(test, "a", batch, p.trans_a ? t : row, p.trans_a ? row : t) *
           element(test, "b", batch, p.trans_b ? col : t, p.trans_b ? t : col);
  }
  double z = p.alpha * sum * scalar_or_one(test, "a_scale_inv") * scalar_or_one(test, "b_scale_inv");
  if (p.beta != 0) {
    z += p.beta * element(test, "c", batch, row, col);
  }
  if (p.bias) {
    z += element(test, "bias", 0, 0, col);
  }
  return z;
}

std::string first_wrong_element(const TestCase& test, double gelu_error, double ulps) {
  const auto p = op::from_params<op::GemmParams>(test.c.params);
  const op::Port& d = test.port("d");
  const double scale = scalar_or_one(test, "d_scale");
  double amax = 0;
  for (std::int64_t b = 0; b < d.batch; ++b) {
    for (std::int64_t r = 0; r < d.rows; ++r) {
      for (std::int64_t c = 0; c < d.cols; ++c) {
        const double z = exact_argument(test, b, r, c);
        const double exact = activate(p.epilogue, z);
        amax = std::max(amax, std::fabs(exact));
        const double wanted = core::round_to(exact * scale, d.dtype, core::Overflow::saturate);
        const double got = element(test, "d", b, r, c);
        double allowed = ulps * core::ulp(wanted, d.dtype);
        if (p.epilogue == "gelu") {
          allowed += core::ulp(wanted, d.dtype) + gelu_error * std::fabs(z) * scale;
        }
        if (!(std::fabs(got - wanted) <= allowed)) {
          std::ostringstream text;
          text << "d[" << b << ',' << r << ',' << c << "] is " << got << " instead of " << wanted << " (exactly "
               << exact << ")";
          return text.str();
        }
      }
    }
  }
  const bool has_amax = test.bytes.find("d_amax") != test.bytes.end();
  if (has_amax && p.epilogue != "gelu" && element(test, "d_amax", 0, 0, 0) != amax) {
    return "d_amax is " + std::to_string(element(test, "d_amax", 0, 0, 0)) + " instead of " + std::to_string(amax);
  }
  return {};
}

void expect_exact(Backend& backend, TestCase& test, double gelu_error) {
  SCOPED_TRACE(describe(test));
  int runs = 0;
  test.outcome = test.harness.run(backend, test.c, test.host, {}, [&](const worker::RunReport& report) {
    SCOPED_TRACE(report.label);
    ++runs;
    EXPECT_EQ(report.error, "");
    EXPECT_TRUE(report.guards_intact) << report.guard_detail;
    EXPECT_TRUE(report.inputs_intact) << report.guard_detail;
    EXPECT_TRUE(report.deterministic());
    EXPECT_EQ(first_wrong_element(test, gelu_error, rounds_partial_sums(report) ? 2 : 0), "");
  });
  EXPECT_EQ(test.outcome.kind, worker::Outcome::Kind::done) << test.outcome.reason;
  EXPECT_GE(runs, 1);
}

}  // namespace numcheck::kernels::test
