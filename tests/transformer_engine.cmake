# Tests of kernels/transformer_engine.
#
# Stand-ins for TransformerEngine's library: a few of its functions; nothing of it; one that needs another library,
# which the loader must not find by itself.
set(te_fakes ${CMAKE_CURRENT_BINARY_DIR}/te_fakes)
function(te_fake_library name folder)
  add_library(${name} SHARED ${ARGN})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/lib" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE numcheck_flags)
  set_target_properties(${name} PROPERTIES CXX_VISIBILITY_PRESET default SKIP_BUILD_RPATH ON
                        LIBRARY_OUTPUT_DIRECTORY ${te_fakes}/${folder})
endfunction()
te_fake_library(te_fake . unit/transformer_engine/fake_library.cpp)
te_fake_library(te_fake_without_gemm . unit/transformer_engine/fake_library.cpp)
target_compile_definitions(te_fake_without_gemm PRIVATE TE_FAKE_WITHOUT_GEMM)
te_fake_library(nvfake companion unit/transformer_engine/fake_companion.cpp)
te_fake_library(te_fake_in_need . unit/transformer_engine/fake_library.cpp)
target_link_libraries(te_fake_in_need PRIVATE -Wl,--no-as-needed nvfake)

numcheck_test(te_library_test LABEL unit
  SOURCES unit/transformer_engine/find_test.cpp unit/transformer_engine/library_test.cpp
          unit/transformer_engine/versions_test.cpp unit/harness/fake.cpp
  LIBRARIES numcheck_te_library numcheck_harness numcheck_plan)
add_dependencies(te_library_test te_fake te_fake_without_gemm te_fake_in_need nvfake)
target_compile_definitions(te_library_test PRIVATE
  TE_FAKE_LIBRARY="$<TARGET_FILE:te_fake>" TE_FAKE_LIBRARY_WITHOUT_GEMM="$<TARGET_FILE:te_fake_without_gemm>"
  TE_FAKE_LIBRARY_IN_NEED="$<TARGET_FILE:te_fake_in_need>" TE_FAKE_COMPANION_FOLDER="${te_fakes}/companion")

if(NUMCHECK_HAVE_CUDA)
  numcheck_test(te_obstacle_test LABEL unit
    SOURCES unit/transformer_engine/obstacle_test.cpp unit/transformer_engine/product_obstacle_test.cpp
    LIBRARIES numcheck_cuda numcheck_te_library numcheck_plan CUDA::cudart_static)
  add_dependencies(te_obstacle_test te_fake)
  target_compile_definitions(te_obstacle_test PRIVATE TE_FAKE_LIBRARY="$<TARGET_FILE:te_fake>")

  # A library that multiplies with cuBLASLt, and a stand-in for that.
  foreach(fake IN ITEMS fake_cublaslt fake_products)
    te_fake_library(te_${fake} . unit/transformer_engine/${fake}.cpp)
    target_include_directories(te_${fake} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endforeach()
  target_link_libraries(te_fake_products PRIVATE te_fake_cublaslt)
  set_target_properties(te_fake_products PROPERTIES SKIP_BUILD_RPATH OFF)
  numcheck_test(te_matmul_calls_test LABEL unit
    SOURCES unit/transformer_engine/matmul_calls_test.cpp LIBRARIES numcheck_cuda CUDA::cudart_static)
  add_dependencies(te_matmul_calls_test te_fake_products)
  target_compile_definitions(te_matmul_calls_test PRIVATE
    FAKE_PRODUCTS="$<TARGET_FILE:te_fake_products>" FAKE_CUBLASLT="$<TARGET_FILE:te_fake_cublaslt>")
endif()

# Our declarations of its interface against its own headers, if they are installed.
set(TE_NUMCHECK_TE_INCLUDE "" CACHE PATH "Folder that holds transformer_engine/transformer_engine.h; empty: no test")
if(TE_NUMCHECK_TE_INCLUDE AND NUMCHECK_HAVE_CUDA)
  numcheck_test(te_interface_test LABEL unit
    SOURCES unit/transformer_engine/interface_test.cpp LIBRARIES numcheck_te_library CUDA::cudart_static)
  target_include_directories(te_interface_test SYSTEM PRIVATE "${TE_NUMCHECK_TE_INCLUDE}")
  foreach(pair IN ITEMS transformer_engine.nvte_set_tensor_param_v2 activation.nvte_clamped_swiglu_v2)
    string(REGEX MATCH "^[a-z_]+" header ${pair})
    string(REGEX REPLACE "^[a-z_]+\\." "" function ${pair})
    file(STRINGS "${TE_NUMCHECK_TE_INCLUDE}/transformer_engine/${header}.h" found REGEX "void ${function}\\(")
    if(found)
      target_compile_definitions(te_interface_test PRIVATE TE_HEADERS_WITH_${function})
    endif()
  endforeach()
  # The gradient of RoPE takes start positions since 2.10; the forward function always did.
  file(READ "${TE_NUMCHECK_TE_INCLUDE}/transformer_engine/fused_rope.h" rope)
  string(REGEX MATCHALL "NVTETensor start_positions" starts "${rope}")
  list(LENGTH starts count)
  if(count GREATER 2)
    target_compile_definitions(te_interface_test PRIVATE TE_HEADERS_FROM_2_10)
  endif()
endif()
