# Tests of the references of softmax.
numcheck_test(softmax_test LABEL reference
  SOURCES reference/softmax_bwd_test.cpp reference/softmax_fwd_test.cpp reference/softmax_lanes_test.cpp reference/softmax_precision_test.cpp
  LIBRARIES numcheck_reference)
if(TE_NUMCHECK_MPFR_LIBRARY AND TE_NUMCHECK_MPFR_INCLUDE)
  target_link_libraries(softmax_test PRIVATE ${TE_NUMCHECK_MPFR_LIBRARY})
  target_include_directories(softmax_test SYSTEM PRIVATE ${TE_NUMCHECK_MPFR_INCLUDE})
  target_compile_definitions(softmax_test PRIVATE NUMCHECK_HAVE_MPFR)
endif()
