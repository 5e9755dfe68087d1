# Comparison, gates and the certificate; then the checks of the checker: planted faults and clean sweeps.
add_library(numcheck_detect STATIC detect/library_case.cpp detect/mini_run.cpp detect/random_case.cpp)
target_include_directories(numcheck_detect PUBLIC detect)
target_link_libraries(numcheck_detect
  PUBLIC numcheck_run numcheck_harness numcheck_tolerance numcheck_metric numcheck_plan numcheck_data numcheck_op
         numcheck_core nlohmann_json::nlohmann_json
  PRIVATE numcheck_sim numcheck_reference fmt::fmt numcheck_flags)

add_executable(clean_sweep detect/clean_sweep.cpp)
target_link_libraries(clean_sweep PRIVATE numcheck_detect numcheck_flags)
add_executable(gemm_cases detect/gemm_cases.cpp)
target_link_libraries(gemm_cases PRIVATE numcheck_detect numcheck_flags)

numcheck_test(metric_test LABEL unit
  SOURCES unit/metric/problem.cpp unit/metric/statistics_test.cpp unit/metric/special_test.cpp
          unit/metric/opinion_test.cpp unit/metric/torch_opinion_test.cpp unit/metric/invariance_test.cpp
  LIBRARIES numcheck_metric numcheck_op numcheck_core)

numcheck_test(detect_test LABEL detect TIMEOUT 300
  SOURCES detect/detect_test.cpp detect/false_alarms_test.cpp detect/fault_cases.cpp detect/shortcuts_test.cpp
  LIBRARIES numcheck_detect numcheck_sim)

numcheck_test(tolerance_test LABEL unit
  SOURCES unit/metric/problem.cpp unit/tolerance/judge_test.cpp unit/tolerance/model_test.cpp
          unit/tolerance/vacuity_test.cpp unit/tolerance/alike_test.cpp unit/tolerance/dependence_test.cpp
  LIBRARIES numcheck_tolerance numcheck_metric numcheck_plan numcheck_data numcheck_op numcheck_core
            nlohmann_json::nlohmann_json)

# A tenth of the sweep in every run; all of it by name.
add_test(NAME clean_sweep COMMAND clean_sweep --cases 10000 --seed 1)
set_tests_properties(clean_sweep PROPERTIES LABELS detect TIMEOUT 900)
add_custom_target(clean_sweep_full
  COMMAND clean_sweep --cases 100000 --seed 2
  COMMENT "100 000 clean simulated cases: no gate may fail"
  USES_TERMINAL)

add_executable(compare_bench EXCLUDE_FROM_ALL bench/compare_bench.cpp)
target_link_libraries(compare_bench PRIVATE numcheck_metric numcheck_op numcheck_core numcheck_flags)
