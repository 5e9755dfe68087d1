# Tests of the GEMM reference.
numcheck_test(reference_test LABEL reference
  SOURCES reference/freivalds_test.cpp reference/gemm_diagnosis_test.cpp reference/gemm_k_ranges_test.cpp reference/gemm_precision_test.cpp reference/gemm_replay_test.cpp reference/gemm_test.cpp
          reference/gemm_yardsticks_test.cpp reference/grouped_gemm_test.cpp reference/packed_product_test.cpp reference/product_test.cpp
  LIBRARIES numcheck_reference)

# MPFR provides arithmetic beyond double; without it, the twofold tests remain.
find_library(TE_NUMCHECK_MPFR_LIBRARY mpfr)
find_path(TE_NUMCHECK_MPFR_INCLUDE mpfr.h)
if(TE_NUMCHECK_MPFR_LIBRARY AND TE_NUMCHECK_MPFR_INCLUDE)
  target_link_libraries(reference_test PRIVATE ${TE_NUMCHECK_MPFR_LIBRARY})
  target_include_directories(reference_test SYSTEM PRIVATE ${TE_NUMCHECK_MPFR_INCLUDE})
  target_compile_definitions(reference_test PRIVATE NUMCHECK_HAVE_MPFR)
endif()

# Optional: ninja reference_bench reference_attention_bench
find_package(benchmark QUIET)
if(benchmark_FOUND AND TE_NUMCHECK_OPENBLAS_LIBRARY)
  add_executable(reference_bench EXCLUDE_FROM_ALL bench/reference_gemm_bench.cpp)
  target_link_libraries(reference_bench PRIVATE
    numcheck_reference numcheck_flags benchmark::benchmark ${TE_NUMCHECK_OPENBLAS_LIBRARY})
  add_executable(reference_attention_bench EXCLUDE_FROM_ALL bench/reference_attention_bench.cpp)
  target_link_libraries(reference_attention_bench PRIVATE numcheck_reference numcheck_flags benchmark::benchmark)
endif()
