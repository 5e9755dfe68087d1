# Planted faults against the whole program on simulated devices.
if(TE_NUMCHECK_PYTHON)
  foreach(test IN ITEMS fault_tables faults move_faults norm_faults)
    add_test(NAME detect_${test}
      COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_${test}.py")
    set_tests_properties(detect_${test} PROPERTIES LABELS detect TIMEOUT 300
      ENVIRONMENT "TE_NUMCHECK=$<TARGET_FILE:te-numcheck>;TE_NUMCHECK_SOURCE=${PROJECT_SOURCE_DIR}")
  endforeach()
endif()
