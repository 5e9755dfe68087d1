# Tests of lib/metric and lib/tolerance: comparison, gates and the certificate.
numcheck_test(metric_test LABEL unit
  SOURCES unit/metric/problem.cpp unit/metric/statistics_test.cpp unit/metric/special_test.cpp unit/metric/unjudged_test.cpp unit/metric/operand_lines_test.cpp
          unit/metric/error_map_test.cpp unit/metric/opinion_test.cpp unit/metric/torch_opinion_test.cpp unit/metric/groups_test.cpp unit/metric/block_slopes_test.cpp unit/metric/repeats_test.cpp unit/metric/invariance_test.cpp unit/metric/exact_pass_test.cpp unit/metric/lattice_test.cpp unit/metric/terms_test.cpp unit/metric/wrong_elements_test.cpp unit/metric/pair_tolerance_test.cpp
  LIBRARIES numcheck_metric numcheck_op numcheck_core)

numcheck_test(tolerance_test LABEL unit
  SOURCES unit/metric/problem.cpp unit/tolerance/judge_test.cpp unit/tolerance/judge_slope_test.cpp unit/tolerance/attention_lost_test.cpp unit/tolerance/largest_error_test.cpp unit/tolerance/model_test.cpp
          unit/tolerance/vacuity_test.cpp unit/tolerance/alike_test.cpp unit/tolerance/dependence_test.cpp
          unit/tolerance/drift_test.cpp unit/tolerance/few_bits_test.cpp unit/tolerance/flushable_test.cpp unit/tolerance/gelu_errors_test.cpp unit/tolerance/relu_errors_test.cpp unit/tolerance/slope_limit_test.cpp unit/tolerance/addend_errors_test.cpp unit/tolerance/replayed_scale_test.cpp unit/tolerance/alpha_first_test.cpp
  LIBRARIES numcheck_tolerance numcheck_metric numcheck_plan numcheck_data numcheck_op numcheck_core
            nlohmann_json::nlohmann_json)

add_executable(compare_bench EXCLUDE_FROM_ALL bench/compare_bench.cpp)
target_link_libraries(compare_bench PRIVATE numcheck_metric numcheck_op numcheck_core numcheck_flags)
