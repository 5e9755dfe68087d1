# The whole program on a GPU. Without one, these tests are skipped with the reason.
function(numcheck_gpu_test name script)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ARGUMENTS;ENVIRONMENT")
  list(PREPEND arg_ENVIRONMENT TE_NUMCHECK=$<TARGET_FILE:te-numcheck> TE_NUMCHECK_SOURCE=${PROJECT_SOURCE_DIR})
  add_test(NAME ${name} COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/gpu/${script}" ${arg_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS gpu TIMEOUT 1200 RESOURCE_LOCK gpu
    SKIP_REGULAR_EXPRESSION "^no usable GPU: " ENVIRONMENT "${arg_ENVIRONMENT}")
endfunction()

if(NUMCHECK_HAVE_CUDA AND TE_NUMCHECK_PYTHON)
  numcheck_gpu_test(gpu_own_kernels test_plans.py ARGUMENTS OwnKernels)
  numcheck_gpu_test(gpu_quick test_plans.py ARGUMENTS Quick)
endif()

# Libraries around cuBLASLt that spoil products, and the whole program with them.
find_library(NUMCHECK_REAL_CUBLASLT NAMES libcublasLt.so.13 libcublasLt.so.12
             HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDAToolkit_LIBRARY_ROOT}/lib64)
mark_as_advanced(NUMCHECK_REAL_CUBLASLT)

# What everything that calls the real library needs.
function(numcheck_wraps_cublaslt target)
  target_sources(${target} PRIVATE gpu/forwarded_cublaslt.cpp)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(${target} SYSTEM PRIVATE "${TE_NUMCHECK_CUBLASLT_INCLUDE}")
  target_compile_definitions(${target} PRIVATE REAL_CUBLASLT="${NUMCHECK_REAL_CUBLASLT}")
  target_link_libraries(${target} PRIVATE numcheck_flags CUDA::cudart_static ${CMAKE_DL_LIBS})
endfunction()

# numcheck_wrapping_cublaslt(name source...)
# A library in a folder of its own, under the file name of the real one.
function(numcheck_wrapping_cublaslt name)
  cmake_path(GET NUMCHECK_REAL_CUBLASLT FILENAME file)
  add_library(${name} SHARED ${ARGN})
  numcheck_wraps_cublaslt(${name})
  set_target_properties(${name} PROPERTIES PREFIX "" OUTPUT_NAME "${file}" SUFFIX "" NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${name}")
endfunction()

if(NUMCHECK_HAVE_CUDA AND NUMCHECK_REAL_CUBLASLT AND TE_NUMCHECK_PYTHON)
  numcheck_wrapping_cublaslt(faulty_cublaslt gpu/faulty_cublaslt.cpp "${PROJECT_SOURCE_DIR}/kernels/cuda/illegal_address.cu")
  numcheck_gpu_test(gpu_containment test_containment.py
    ENVIRONMENT TE_FAULTY_CUBLASLT=$<TARGET_FILE_DIR:faulty_cublaslt>)
  set(k_fault gpu/k_fault.cu gpu/k_fault_plan.cpp)
  numcheck_wrapping_cublaslt(k_fault_cublaslt gpu/k_fault_cublaslt.cpp ${k_fault})
  numcheck_gpu_test(gpu_k_faults test_k_faults.py
    ENVIRONMENT TE_K_FAULT_CUBLASLT=$<TARGET_FILE_DIR:k_fault_cublaslt>)
  numcheck_test(k_fault_test LABEL unit SOURCES gpu/k_fault_test.cpp ${k_fault})
  numcheck_wraps_cublaslt(k_fault_test)
endif()

# The opinions of PyTorch and NumPy on outputs, if they are installed; without a GPU, on a simulated device.
add_executable(opinion_counts gpu/opinion_counts.cpp)
target_link_libraries(opinion_counts PRIVATE numcheck_metric numcheck_op numcheck_core numcheck_flags)
if(TE_NUMCHECK_PYTHON)
  add_test(NAME gpu_opinions
    COMMAND "${TE_NUMCHECK_PYTHON}" -B "${CMAKE_CURRENT_SOURCE_DIR}/gpu/test_opinions.py")
  set_tests_properties(gpu_opinions PROPERTIES LABELS gpu TIMEOUT 600 RESOURCE_LOCK gpu
    SKIP_REGULAR_EXPRESSION "nothing was compared"
    ENVIRONMENT "TE_NUMCHECK=$<TARGET_FILE:te-numcheck>;TE_NUMCHECK_SOURCE=${PROJECT_SOURCE_DIR};TE_OPINION_COUNTS=$<TARGET_FILE:opinion_counts>")
endif()
