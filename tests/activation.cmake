numcheck_test(activation_test LABEL reference
  SOURCES reference/activation_bound_test.cpp reference/activation_precision_test.cpp
          reference/activation_test.cpp reference/bias_grad_test.cpp reference/mxfp8_test.cpp reference/repeated_terms_test.cpp
  LIBRARIES numcheck_reference)
if(TE_NUMCHECK_MPFR_LIBRARY AND TE_NUMCHECK_MPFR_INCLUDE)
  target_link_libraries(activation_test PRIVATE ${TE_NUMCHECK_MPFR_LIBRARY})
  target_include_directories(activation_test SYSTEM PRIVATE ${TE_NUMCHECK_MPFR_INCLUDE})
  target_compile_definitions(activation_test PRIVATE NUMCHECK_HAVE_MPFR)
endif()

if(TE_NUMCHECK_PYTHON)
  foreach(test IN ITEMS activation_faults)
    add_test(NAME detect_${test}
      COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/detect/test_${test}.py")
    set_tests_properties(detect_${test} PROPERTIES LABELS detect TIMEOUT 300
      ENVIRONMENT "TE_NUMCHECK=$<TARGET_FILE:te-numcheck>;TE_NUMCHECK_SOURCE=${PROJECT_SOURCE_DIR}")
  endforeach()
endif()
