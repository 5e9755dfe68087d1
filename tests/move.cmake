# Tests of the references of dropout, mixture-of-experts moves, casts, rotary embeddings and the router.
numcheck_test(move_test LABEL reference
  SOURCES reference/dropout_test.cpp reference/moe_test.cpp reference/quantize_test.cpp reference/rope_test.cpp
          reference/router_topk_test.cpp
  LIBRARIES numcheck_reference)
if(TE_NUMCHECK_MPFR_LIBRARY AND TE_NUMCHECK_MPFR_INCLUDE)
  target_link_libraries(move_test PRIVATE ${TE_NUMCHECK_MPFR_LIBRARY})
  target_include_directories(move_test SYSTEM PRIVATE ${TE_NUMCHECK_MPFR_INCLUDE})
  target_compile_definitions(move_test PRIVATE NUMCHECK_HAVE_MPFR)
endif()
