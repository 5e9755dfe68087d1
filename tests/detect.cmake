# Tests of the checks themselves: planted faults must be caught, clean cases must pass.
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

add_executable(tamper_outputs detect/output_tampering.cpp detect/tamper_outputs.cpp)
target_link_libraries(tamper_outputs
  PRIVATE numcheck_app numcheck_verdict numcheck_prepare numcheck_harness numcheck_sim numcheck_plan numcheck_data
          nlohmann_json::nlohmann_json fmt::fmt numcheck_flags)

# A tenth of the sweep in every run; all of it by name.
add_test(NAME clean_sweep COMMAND clean_sweep --cases 10000 --seed 1)
set_tests_properties(clean_sweep PROPERTIES LABELS detect TIMEOUT 900)
add_custom_target(clean_sweep_full
  COMMAND clean_sweep --cases 100000 --seed 2
  COMMENT "100 000 clean simulated cases: no gate may fail"
  USES_TERMINAL)

# Clean products whose errors are not independent, and what a declared shortcut excuses.
numcheck_test(detect_test LABEL detect TIMEOUT 300
  SOURCES detect/false_alarms_test.cpp detect/passes_test.cpp detect/shortcuts_test.cpp detect/slices_test.cpp
  LIBRARIES numcheck_detect numcheck_sim)

if(NOT TE_NUMCHECK_PYTHON)
  return()
endif()

set(sweep "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/sweep_ops.py" --program
    "$<TARGET_FILE:te-numcheck>" --gemm-cases "$<TARGET_FILE:gemm_cases>")
add_custom_target(op_sweep_full
  COMMAND ${sweep} --cases 10000 --seed 2 --device sim:sm_90
  COMMENT "10 000 clean simulated cases of every op: no gate may fail"
  USES_TERMINAL VERBATIM)
add_test(NAME op_sweep_borders COMMAND ${sweep} --cases 60 --borders --device sim:sm_90)
add_test(NAME op_sweep_unusual COMMAND ${sweep} --cases 60 --unusual --device sim:sm_90 --families gemm norm moe
  softmax)
set(detect_tests op_sweep_borders op_sweep_unusual)
add_custom_target(op_sweep_unusual_full
  COMMAND ${sweep} --cases 1000 --unusual --seed 2 --device sim:sm_90
  COMMENT "1000 unusual simulated cases of every op: no gate may fail"
  USES_TERMINAL VERBATIM)

# Each family of ops has one file with its planted faults and clean cases; a new file adds these tests.
set(detect_environment "TE_NUMCHECK=$<TARGET_FILE:te-numcheck>;TE_NUMCHECK_SOURCE=${PROJECT_SOURCE_DIR}")
file(GLOB families CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/detect/ops/*.py")
foreach(path IN LISTS families)
  cmake_path(GET path STEM family)
  add_test(NAME detect_faults_${family}
    COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_faults.py" ${family})
  add_test(NAME op_sweep_${family} COMMAND ${sweep} --families ${family} --cases 250 --device sim:sm_90)
  list(APPEND detect_tests detect_faults_${family} op_sweep_${family})
endforeach()
add_test(NAME detect_fault_tables
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_fault_tables.py")
add_test(NAME detect_accounted
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_accounted.py")
add_test(NAME detect_false_alarms
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_false_alarms.py")
add_test(NAME detect_sensitivity
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_sensitivity.py")
add_test(NAME detect_converted
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_converted.py")
add_test(NAME detect_groups
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_groups.py")
add_test(NAME detect_grouped
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_grouped.py")
add_test(NAME detect_flips
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_flips.py")
add_test(NAME detect_scales
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_scales.py")
add_test(NAME detect_replayed_scale
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_replayed_scale.py")
add_test(NAME detect_formats
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_formats.py")
add_test(NAME detect_amax
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_amax.py")
add_test(NAME detect_alternating_rows
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_alternating_rows.py")
add_test(NAME detect_bits
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_bits.py")
add_test(NAME detect_not_told
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_not_told.py")
add_test(NAME detect_delayed_scaling
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_delayed_scaling.py")
# Names that diagnose finds for planted faults, of families that take seconds; of all by name.
set(diagnosis_table "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/diagnosis_table.py"
    "$<TARGET_FILE:te-numcheck>" --jobs 2)
add_test(NAME detect_diagnosis_table
  COMMAND ${diagnosis_table} --families activation dropout fp8_recipe moe norm quantize rope softmax --least 0.98)
add_test(NAME detect_diagnosis_draws
  COMMAND ${diagnosis_table} --families attention_dropout --least 1 --faults nothing_dropped draws_used_four_times nan_written
    inf_written all_zero all_seven signs_flipped)
list(APPEND detect_tests detect_diagnosis_table detect_diagnosis_draws)
add_custom_target(diagnosis_pairs
  COMMAND ${CMAKE_COMMAND} -E env ${detect_environment} "${TE_NUMCHECK_PYTHON}" -B
    "${CMAKE_CURRENT_SOURCE_DIR}/detect/diagnosis_pairs.py" "$<TARGET_FILE:te-numcheck>" --least-both 0.8 --least-one 0.98 --cpu 8
  USES_TERMINAL VERBATIM)
add_custom_target(diagnosis_table_all
  COMMAND ${CMAKE_COMMAND} -E env ${detect_environment} ${diagnosis_table} --every --shapes 0 1 --seeds 1 2 3 --least 0.98
    --most-wrong 0.005
  COMMENT "the same in two shapes and with three seeds, and of faults that no table plants: half an hour on two processors"
  USES_TERMINAL VERBATIM)
add_custom_target(clean_diagnoses
  COMMAND ${CMAKE_COMMAND} -E env ${detect_environment} "${TE_NUMCHECK_PYTHON}" -B
    "${CMAKE_CURRENT_SOURCE_DIR}/detect/clean_diagnoses.py" "$<TARGET_FILE:te-numcheck>" --cases 450 --jobs 2
    --gemm-cases "$<TARGET_FILE:gemm_cases>"
  COMMENT "what diagnose says of 10^4 right results"
  USES_TERMINAL VERBATIM)
add_test(NAME detect_clean_diagnoses
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/clean_diagnoses.py" "$<TARGET_FILE:te-numcheck>" --cases 5
    --gemm-cases "$<TARGET_FILE:gemm_cases>")
list(APPEND detect_tests detect_clean_diagnoses)
add_custom_target(diagnosis_table
  COMMAND ${CMAKE_COMMAND} -E env ${detect_environment} ${diagnosis_table}
  COMMENT "what diagnose says of every planted fault"
  USES_TERMINAL VERBATIM)
add_test(NAME detect_diagnoses
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_diagnoses.py")
add_test(NAME detect_largest_numbers
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_largest_numbers.py")
add_test(NAME detect_clean_ops
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_clean_ops.py")
add_test(NAME detect_clean_products
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_clean_products.py")
add_test(NAME detect_drawing COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_drawing.py")
add_test(NAME detect_headroom
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_headroom.py")
add_custom_target(headroom_table
  COMMAND ${sweep} --cases 500 --seed 3 --device sim:sm_90 --headroom
  COMMENT "How far 500 clean cases of every op stay from each limit"
  USES_TERMINAL VERBATIM)
add_custom_target(sensitivity_table
  COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/sensitivity.py" --program
          "$<TARGET_FILE:te-numcheck>"
  COMMENT "The smallest faults that are caught, for the table in CONTRIBUTING.md"
  USES_TERMINAL VERBATIM)
set(tamperings "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/tamperings.py" --program
    "$<TARGET_FILE:te-numcheck>" --table "${PROJECT_SOURCE_DIR}/CONTRIBUTING.md")
add_test(NAME detect_tamperings COMMAND ${tamperings} --count 8)
add_custom_target(tamperings_full
  COMMAND ${tamperings} --count 500 --seed 2
  COMMENT "500 random tamperings with right results of every op and mode: all must be caught"
  USES_TERMINAL VERBATIM)
list(APPEND detect_tests detect_fault_tables detect_accounted detect_alternating_rows detect_amax detect_formats detect_bits detect_clean_ops detect_clean_products detect_largest_numbers detect_converted detect_delayed_scaling
     detect_diagnoses detect_drawing detect_false_alarms detect_flips detect_grouped detect_groups detect_headroom detect_not_told detect_replayed_scale
     detect_scales detect_sensitivity detect_tamperings)
set_tests_properties(${detect_tests} PROPERTIES LABELS detect TIMEOUT 600 ENVIRONMENT "${detect_environment}")
