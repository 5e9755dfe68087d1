# Tests of the references of LayerNorm and RMSNorm.
numcheck_test(norm_test LABEL reference
  SOURCES reference/norm_bwd_test.cpp reference/norm_diagnosis_test.cpp reference/norm_findings_test.cpp reference/norm_fwd_test.cpp reference/norm_lanes_test.cpp reference/norm_special_test.cpp reference/flushed_subnormals_test.cpp
          reference/norm_precision_test.cpp reference/norm_range_test.cpp reference/row_sum_test.cpp
  LIBRARIES numcheck_reference)
if(TE_NUMCHECK_MPFR_LIBRARY AND TE_NUMCHECK_MPFR_INCLUDE)
  target_link_libraries(norm_test PRIVATE ${TE_NUMCHECK_MPFR_LIBRARY})
  target_include_directories(norm_test SYSTEM PRIVATE ${TE_NUMCHECK_MPFR_INCLUDE})
  target_compile_definitions(norm_test PRIVATE NUMCHECK_HAVE_MPFR)
endif()
