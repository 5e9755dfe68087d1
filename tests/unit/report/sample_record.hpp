// Handmade results for the tests of the report library.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "op/gemm.hpp"
#include "report/record_json.hpp"
#include "verdict/record.hpp"

namespace numcheck::report::testing {

/// A gemm case with its identifier and digest.
inline plan::Case sample_case(std::string_view mode, std::int64_t k, const plan::Environment& environment = {},
                              const std::string& backend = "cublaslt") {
  plan::Case c;
  c.op = &op::gemm();
  op::GemmParams params;
  params.m = 8;
  params.n = 4;
  params.k = k;
  c.params = op::to_params(params);
  c.mode = op::find_mode(mode);
  c.backend = backend;
  c.inputs.common = data::make_distribution("normal");
  c.seed = 7;
  c.environment = environment;
  plan::identify(c);
  return c;
}

/// The contents of a sample run.
struct SampleRun {
  std::string label = "cublasLt algo 67, split-k 1";
  std::string bits = "bits";  ///< the output's digest is that of this string
  std::string observed = "fp32";
  double rel_l2 = 1.1e-6;
  double effective_bits = 20.5;
  double measured = 0.5;
  double limit = 1;
};

inline verdict::RunResult sample_run(const SampleRun& sample) {
  verdict::RunResult result;
  result.run.label = sample.label;
  result.run.details = {{"id", "67"}, {"tile", "128x128"}};
  result.run.observed = model::class_named(sample.observed);
  result.run.device_s = 1e-4;
  result.expected_class = model::PrecisionClass::fp32;
  verdict::OutputResult output;
  output.port = "d";
  output.digest = core::digest_of(std::string_view(sample.bits));
  output.model_source = "gemm/fp32 on sm_90";
  output.statistics.elements = 32;
  output.statistics.finite = 32;
  output.statistics.arithmetic.rel_l2 = sample.rel_l2;
  output.statistics.effective_bits = sample.effective_bits;
  output.statistics.worst = {{.index = 13,
                              .got = 1.0078125,
                              .got_bits = 0x3f810000,
                              .expected = 1.000244140625,
                              .ulps = 12,
                              .over_bound = 1.25}};
  const bool ok = sample.measured <= sample.limit;
  output.criteria = {{"G2 spread", sample.measured, sample.limit, ok, "gemm/fp32 on sm_90"}};
  output.certificate.fakes = {{"zeros", tolerance::Fake::Outcome::rejected, "G2 spread"}};
  result.status = ok ? verdict::Status::pass : verdict::Status::fail;
  result.failing = ok ? "" : "d: G2 spread";
  result.outputs.push_back(std::move(output));
  return result;
}

inline verdict::CaseResult sample_result(const plan::Case& c, const std::vector<SampleRun>& runs) {
  verdict::CaseResult result;
  result.c = &c;
  result.status = verdict::Status::pass;
  for (const SampleRun& run : runs) {
    result.runs.push_back(sample_run(run));
    if (result.runs.back().status == verdict::Status::fail) {
      result.status = verdict::Status::fail;
      result.reason = result.runs.back().failing;
    }
  }
  result.times = {.inputs_s = 0.1, .device_s = 0.2, .reference_s = 0.3, .yardsticks_s = 0.5, .comparison_s = 0.4};
  return result;
}

}  // namespace numcheck::report::testing
