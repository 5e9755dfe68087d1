# Functions for targets.

# numcheck_library(name SOURCES ... [PUBLIC targets...] [PRIVATE targets...])
# A static library of one folder. Headers are included from lib/ ("core/dtype.hpp") and the root ("reference/gemm.hpp").
function(numcheck_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}/lib" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} numcheck_flags)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# numcheck_unity(target [APART file...])
# With TE_NUMCHECK_UNITY, compiles the target's sources eight at a time: where they include JSON, eight take little longer than
# two. APART lists files that are compiled alone, because file-local names of theirs are in other files as well.
function(numcheck_unity target)
  cmake_parse_arguments(ARG "" "" "APART" ${ARGN})
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TE_NUMCHECK_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# numcheck_isa_sources(target file...)
# Compiles each file once per instruction set, with NUMCHECK_ISA naming the namespace (baseline, avx2, avx512), and adds
# the objects to the target. On processors other than x86-64, only `baseline` is built.
function(numcheck_isa_sources target)
  set(flags_baseline "")
  set(flags_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2 -mlzcnt)
  set(flags_avx512 ${flags_avx2} -mavx512f -mavx512dq -mavx512bw -mavx512vl -mprefer-vector-width=512)
  set(sets baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND sets avx2 avx512)
  endif()
  foreach(isa IN LISTS sets)
    set(objects ${target}_${isa})
    add_library(${objects} OBJECT ${ARGN})
    target_compile_definitions(${objects} PRIVATE NUMCHECK_ISA=${isa})
    target_compile_options(${objects} PRIVATE -O3 ${flags_${isa}})
    target_include_directories(${objects} PRIVATE "${PROJECT_SOURCE_DIR}/lib" "${PROJECT_SOURCE_DIR}")
    target_link_libraries(${objects} PRIVATE numcheck_flags)
    set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()

# numcheck_test(name LABEL unit SOURCES ... [LIBRARIES ...] [TIMEOUT seconds] [BRISK])
# A GoogleTest executable whose tests CTest runs one by one under the label. BRISK compiles it with -O1: tests full of JSON
# take a third less time to compile, and compute little.
function(numcheck_test name)
  cmake_parse_arguments(ARG "BRISK" "LABEL;TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} numcheck_flags GTest::gtest_main)
  if(ARG_BRISK)
    target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
endfunction()
