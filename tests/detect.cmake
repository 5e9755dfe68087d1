# Planted faults against the whole program on simulated devices.
if(TE_NUMCHECK_PYTHON)
  add_test(NAME detect_faults COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_faults.py")
  set_tests_properties(detect_faults PROPERTIES LABELS detect TIMEOUT 300
    ENVIRONMENT "TE_NUMCHECK=$<TARGET_FILE:te-numcheck>;TE_NUMCHECK_SOURCE=${PROJECT_SOURCE_DIR}")
endif()
