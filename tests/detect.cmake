# Planted faults against the whole program on simulated devices.
if(TE_NUMCHECK_PYTHON)
  foreach(test IN ITEMS fault_tables faults move_faults norm_faults)
    add_test(NAME detect_${test}
      COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_${test}.py")
    set_tests_properties(detect_${test} PROPERTIES LABELS detect TIMEOUT 300
      ENVIRONMENT "TE_NUMCHECK=$<TARGET_FILE:te-numcheck>;TE_NUMCHECK_SOURCE=${PROJECT_SOURCE_DIR}")
  endforeach()
endif()

# False alarms of every op: a part in every run, all of it by name. clean_sweep has more of gemm on simulated devices.
if(TE_NUMCHECK_PYTHON)
  set(sweep "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/sweep_ops.py" --program
      "$<TARGET_FILE:te-numcheck>" --gemm-cases "$<TARGET_FILE:gemm_cases>")
  add_test(NAME op_sweep COMMAND ${sweep} --cases 250 --device sim:sm_90)
  add_test(NAME op_sweep_borders COMMAND ${sweep} --cases 60 --borders --device sim:sm_90)
  set_tests_properties(op_sweep op_sweep_borders PROPERTIES LABELS detect TIMEOUT 600)
  add_custom_target(op_sweep_full
    COMMAND ${sweep} --cases 10000 --seed 2 --device sim:sm_90
    COMMENT "10 000 clean simulated cases of every op: no gate may fail"
    USES_TERMINAL VERBATIM)
endif()
