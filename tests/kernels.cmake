# Tests of the harness, the loader and the simulated and own kernels; the bandwidth benchmark.
numcheck_test(harness_test LABEL unit
  SOURCES unit/harness/fake.cpp unit/harness/guards_test.cpp unit/harness/failures_test.cpp
          unit/harness/classify_sums_test.cpp unit/harness/classify_test.cpp unit/harness/kept_test.cpp unit/harness/mask_probe_test.cpp unit/harness/port_image_test.cpp unit/harness/recent_algorithms_test.cpp
  LIBRARIES numcheck_harness numcheck_plan numcheck_tolerance)
numcheck_test(harness_devices_test LABEL unit
  SOURCES unit/harness/devices_test.cpp unit/harness/fake.cpp unit/harness/passes_test.cpp
  LIBRARIES numcheck_kernels numcheck_harness numcheck_plan numcheck_sim numcheck_driver numcheck_cuda)

# Finding cuBLASLt and cuDNN: a stand-in that knows only its versions.
add_library(fake_versions SHARED unit/harness/fake_versions.cpp)
target_link_libraries(fake_versions PRIVATE numcheck_flags)
numcheck_test(wheels_test LABEL unit SOURCES unit/harness/wheels_test.cpp LIBRARIES numcheck_driver)
add_dependencies(wheels_test fake_versions)
target_compile_definitions(wheels_test PRIVATE NUMCHECK_FAKE_VERSIONS="$<TARGET_FILE:fake_versions>")

if(NUMCHECK_HAVE_CUDA)
  numcheck_test(norm_workspace_test LABEL unit SOURCES unit/cuda/norm_workspace_test.cpp LIBRARIES numcheck_cuda CUDA::cudart_static)
  numcheck_test(cublaslt_groups_test LABEL unit SOURCES unit/cuda/grouped_obstacle_test.cpp LIBRARIES numcheck_cuda numcheck_plan CUDA::cudart_static)
  numcheck_test(gpu_gemm_test LABEL gpu TIMEOUT 300
    SOURCES gpu/gemm_cases.cpp gpu/gemm_test.cpp unit/harness/fake.cpp
    LIBRARIES numcheck_cuda numcheck_harness numcheck_driver numcheck_plan)
  numcheck_test(gpu_memory_test LABEL gpu TIMEOUT 300 SOURCES gpu/memory_test.cpp
    LIBRARIES numcheck_cuda numcheck_harness numcheck_driver CUDA::cudart_static)
  # ctest -L exhaustive: a minute on a GPU
  numcheck_test(gpu_cast_exhaustive_test LABEL exhaustive TIMEOUT 300
    SOURCES gpu/cast_exhaustive_test.cpp gpu/casts.cu
    LIBRARIES numcheck_cuda numcheck_harness numcheck_driver CUDA::cudart_static)
  target_include_directories(gpu_cast_exhaustive_test PRIVATE "${PROJECT_SOURCE_DIR}")
  set_tests_properties(gpu_gemm_test gpu_memory_test gpu_cast_exhaustive_test
    PROPERTIES SKIP_REGULAR_EXPRESSION "no usable GPU" RESOURCE_LOCK gpu)
endif()

# ninja memory_bench: bandwidth of our own kernels, of TransformerEngine's and of a copy, on a GPU.
if(NUMCHECK_HAVE_CUDA)
  add_executable(memory_bench EXCLUDE_FROM_ALL bench/memory_bench.cpp)
  target_link_libraries(memory_bench PRIVATE numcheck_app numcheck_flags CUDA::cudart_static)
endif()
