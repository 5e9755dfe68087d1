# Tests of kernels/cudnn.
if(NUMCHECK_HAVE_CUDA)
  numcheck_test(cudnn_test LABEL unit
    SOURCES unit/cudnn/library_test.cpp unit/cudnn/obstacle_test.cpp unit/cudnn/attention_gates_test.cpp
    LIBRARIES numcheck_cuda numcheck_driver numcheck_plan CUDA::cudart_static)

  # Graphs and engines for devices that this machine lacks. Without a driver, the toolkit's stub stands in for it, because
  # cuDNN needs one before it says which engines accept a graph.
  numcheck_test(cudnn_deviceless_test LABEL unit TIMEOUT 300
    SOURCES unit/cudnn/deviceless_test.cpp unit/cudnn/attention_test.cpp unit/cudnn/attention_fp8_test.cpp
            unit/cudnn/gate_agreement_test.cpp unit/cudnn/contract_test.cpp
    LIBRARIES numcheck_app numcheck_cuda numcheck_driver numcheck_eligibility numcheck_plan CUDA::cudart_static
              ${CMAKE_DL_LIBS})
  target_compile_definitions(cudnn_deviceless_test PRIVATE TE_NUMCHECK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_tests_properties(cudnn_deviceless_test PROPERTIES SKIP_REGULAR_EXPRESSION "no usable cuDNN")
  find_file(NUMCHECK_STUB_LIBCUDA libcuda.so HINTS ${CUDAToolkit_LIBRARY_DIR}/stubs ${CUDAToolkit_LIBRARY_ROOT}/lib64/stubs
            NO_DEFAULT_PATH)
  mark_as_advanced(NUMCHECK_STUB_LIBCUDA)
  if(NUMCHECK_STUB_LIBCUDA)
    target_compile_definitions(cudnn_deviceless_test PRIVATE STUB_LIBCUDA="${NUMCHECK_STUB_LIBCUDA}")
  endif()

  numcheck_test(gpu_attention_gates_test LABEL gpu TIMEOUT 600
    SOURCES gpu/attention_gates_test.cpp
    LIBRARIES numcheck_cuda numcheck_te_library numcheck_driver numcheck_eligibility numcheck_plan CUDA::cudart_static)
  set_tests_properties(gpu_attention_gates_test
    PROPERTIES SKIP_REGULAR_EXPRESSION "no usable (GPU|cuDNN|TransformerEngine)" RESOURCE_LOCK gpu)

  # Our declarations of its interface against its own headers, if they are installed.
  find_path(TE_NUMCHECK_CUDNN_INCLUDE cudnn_graph.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(TE_NUMCHECK_CUDNN_INCLUDE)
    numcheck_test(cudnn_interface_test LABEL unit SOURCES unit/cudnn/interface_test.cpp LIBRARIES numcheck_driver)
    target_include_directories(cudnn_interface_test SYSTEM PRIVATE
      "${TE_NUMCHECK_CUDNN_INCLUDE}" ${CUDAToolkit_INCLUDE_DIRS})
  endif()
endif()
