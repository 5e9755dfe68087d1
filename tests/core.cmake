# Tests of lib/core.
numcheck_test(core_test LABEL unit
  SOURCES unit/core/buffer_test.cpp unit/core/codec_test.cpp unit/core/cpu_limit_test.cpp unit/core/dtype_test.cpp
          unit/core/file_test.cpp unit/core/interned_string_test.cpp unit/core/json_depth_test.cpp unit/core/kept_blocks_test.cpp unit/core/mapped_file_test.cpp unit/core/parallel_test.cpp unit/core/printable_test.cpp
          unit/core/text_test.cpp unit/core/trace_test.cpp
  LIBRARIES numcheck_core)
# Impossible allocations are part of the test; the sanitizer would end the program instead of refusing them.
set_tests_properties(core_test PROPERTIES ENVIRONMENT ASAN_OPTIONS=allocator_may_return_null=1)
numcheck_test(core_codec_sweep_test LABEL unit SOURCES unit/core/codec_sweep_test.cpp LIBRARIES numcheck_core)

# The variable is read once per process, so each value needs its own process.
foreach(isa IN ITEMS baseline avx2)
  add_test(NAME core_isa_${isa} COMMAND core_test --gtest_filter=IsaDispatch.*)
  set_tests_properties(core_isa_${isa} PROPERTIES LABELS unit ENVIRONMENT TE_NUMCHECK_ISA=${isa})
endforeach()

# The CUDA headers have host versions of every conversion; no CUDA compiler is needed for them.
find_path(TE_NUMCHECK_CUDA_INCLUDE cuda_fp8.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS /usr/local/cuda/include /opt/cuda/include
  DOC "Folder of the CUDA headers, for the test of the codecs")
if(TE_NUMCHECK_CUDA_INCLUDE)
  numcheck_test(core_codec_cuda_test LABEL unit SOURCES unit/core/codec_cuda_test.cpp LIBRARIES numcheck_core)
  target_include_directories(core_codec_cuda_test SYSTEM PRIVATE ${TE_NUMCHECK_CUDA_INCLUDE})
endif()

# Every folder with sources compiled once per instruction set.
foreach(library IN ITEMS core data metric model reference)
  foreach(isa IN ITEMS baseline avx2 avx512)
    if(TARGET numcheck_${library}_${isa})
      add_test(NAME ${library}_symbols_${isa}
        COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DISA=${isa}
                "-DOBJECTS=$<TARGET_OBJECTS:numcheck_${library}_${isa}>"
                -P ${CMAKE_CURRENT_LIST_DIR}/unit/core/isa_symbols.cmake)
      set_tests_properties(${library}_symbols_${isa} PROPERTIES LABELS unit)
    endif()
  endforeach()
endforeach()
