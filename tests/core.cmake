numcheck_test(core_test LABEL unit
  SOURCES unit/core_buffer_test.cpp unit/core_codec_test.cpp unit/core_cpu_limit_test.cpp unit/core_dtype_test.cpp
          unit/core_file_test.cpp unit/core_json_depth_test.cpp unit/core_parallel_test.cpp unit/core_printable_test.cpp
          unit/core_text_test.cpp
  LIBRARIES numcheck_core)
# Impossible allocations are part of the test; the sanitizer would end the program instead of refusing them.
set_tests_properties(core_test PROPERTIES ENVIRONMENT ASAN_OPTIONS=allocator_may_return_null=1)
numcheck_test(core_codec_sweep_test LABEL unit SOURCES unit/core_codec_sweep_test.cpp LIBRARIES numcheck_core)

# The variable is read once a process, so each value needs a process.
foreach(isa IN ITEMS baseline avx2)
  add_test(NAME core_isa_${isa} COMMAND core_test --gtest_filter=IsaDispatch.*)
  set_tests_properties(core_isa_${isa} PROPERTIES LABELS unit ENVIRONMENT TE_NUMCHECK_ISA=${isa})
endforeach()

# The CUDA headers have host versions of every conversion; no CUDA compiler is needed for them.
find_path(TE_NUMCHECK_CUDA_INCLUDE cuda_fp8.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} PATHS /usr/local/cuda/include /opt/cuda/include
  DOC "Folder of the CUDA headers, for the test of the codecs")
if(TE_NUMCHECK_CUDA_INCLUDE)
  numcheck_test(core_codec_cuda_test LABEL unit SOURCES unit/core_codec_cuda_test.cpp LIBRARIES numcheck_core)
  target_include_directories(core_codec_cuda_test SYSTEM PRIVATE ${TE_NUMCHECK_CUDA_INCLUDE})
endif()

# Every folder with sources compiled once per instruction set.
foreach(library IN ITEMS core data metric model)
  foreach(isa IN ITEMS baseline avx2 avx512)
    if(TARGET numcheck_${library}_${isa})
      add_test(NAME ${library}_symbols_${isa}
        COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DISA=${isa}
                "-DOBJECTS=$<TARGET_OBJECTS:numcheck_${library}_${isa}>"
                -P ${CMAKE_CURRENT_LIST_DIR}/unit/core_isa_symbols.cmake)
      set_tests_properties(${library}_symbols_${isa} PROPERTIES LABELS unit)
    endif()
  endforeach()
endforeach()
