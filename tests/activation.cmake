# Tests of the references of activations, bias gradients and MXFP8 outputs.
numcheck_test(activation_test LABEL reference
  SOURCES reference/activation_bound_test.cpp reference/activation_lanes_test.cpp reference/activation_precision_test.cpp
          reference/activation_test.cpp reference/bias_grad_test.cpp reference/mxfp8_test.cpp reference/repeated_terms_test.cpp
  LIBRARIES numcheck_reference)
if(TE_NUMCHECK_MPFR_LIBRARY AND TE_NUMCHECK_MPFR_INCLUDE)
  target_link_libraries(activation_test PRIVATE ${TE_NUMCHECK_MPFR_LIBRARY})
  target_include_directories(activation_test SYSTEM PRIVATE ${TE_NUMCHECK_MPFR_INCLUDE})
  target_compile_definitions(activation_test PRIVATE NUMCHECK_HAVE_MPFR)
endif()
