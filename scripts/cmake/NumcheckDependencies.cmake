# Packages. For the program, only CUDA is optional; MPFR, GoogleTest and Google Benchmark are for the tests.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 REQUIRED)

# xxHash. The static library saves the binary a dependency. If there is a library but no header, we use our own
# declarations of the few functions that we call; their binary interface has been stable since xxHash 0.8.0.
find_library(TE_NUMCHECK_XXHASH_LIBRARY NAMES libxxhash.a xxhash libxxhash.so.0 REQUIRED)
find_path(TE_NUMCHECK_XXHASH_INCLUDE xxhash.h PATHS "${CMAKE_CURRENT_LIST_DIR}/xxhash_declarations" REQUIRED)
add_library(numcheck_xxhash INTERFACE)
target_link_libraries(numcheck_xxhash INTERFACE ${TE_NUMCHECK_XXHASH_LIBRARY})
target_include_directories(numcheck_xxhash SYSTEM INTERFACE ${TE_NUMCHECK_XXHASH_INCLUDE})

# The reference's double GEMM uses OpenBLAS if there is one, otherwise Eigen's own kernels. The static library needs no
# Fortran run-time library, so a copied binary needs none either; if it cannot be linked, the shared one is used.
option(TE_NUMCHECK_OPENBLAS "Use OpenBLAS for the reference, if it is found" ON)
include(CheckCXXSourceCompiles)
foreach(kind IN ITEMS a so)
  find_library(NUMCHECK_OPENBLAS_${kind} NAMES libopenblas.${kind} libopenblas.${kind}.0)
  mark_as_advanced(NUMCHECK_OPENBLAS_${kind})
  if(TE_NUMCHECK_OPENBLAS AND NUMCHECK_OPENBLAS_${kind} AND NOT TE_NUMCHECK_OPENBLAS_LIBRARY)
    set(CMAKE_REQUIRED_LIBRARIES ${NUMCHECK_OPENBLAS_${kind}} Threads::Threads)
    check_cxx_source_compiles("
      extern \"C\" { void dgemm_(); void sgemm_(); void openblas_set_num_threads(int); char* openblas_get_config();
                   void gotoblas_init(); void* blas_memory_alloc(int); void blas_memory_free(void*); }
      int main() { gotoblas_init(); blas_memory_free(blas_memory_alloc(0)); openblas_set_num_threads(1);
                   openblas_get_config(); dgemm_(); sgemm_(); }"
      NUMCHECK_OPENBLAS_${kind}_LINKS)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(NUMCHECK_OPENBLAS_${kind}_LINKS)
      set(TE_NUMCHECK_OPENBLAS_LIBRARY "${NUMCHECK_OPENBLAS_${kind}}" CACHE FILEPATH
          "OpenBLAS for the reference; empty: Eigen's own kernels")
    endif()
  endif()
endforeach()

set(NUMCHECK_HAVE_CUDA OFF)
if(NOT TE_NUMCHECK_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12.0 QUIET)
  if(CUDAToolkit_FOUND)
    if(NOT DEFINED CMAKE_CUDA_COMPILER AND EXISTS "${CUDAToolkit_BIN_DIR}/nvcc")
      set(CMAKE_CUDA_COMPILER "${CUDAToolkit_BIN_DIR}/nvcc")
    endif()
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      include(NumcheckCudaArchitectures)
    endif()
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    set(NUMCHECK_HAVE_CUDA ON)
  elseif(TE_NUMCHECK_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TE_NUMCHECK_CUDA=ON but no CUDA toolkit (12.0 or newer) was found. "
                        "Install it, set CUDAToolkit_ROOT, or configure with -DTE_NUMCHECK_CUDA=OFF.")
  endif()
endif()
message(STATUS "te-numcheck: CUDA backends ${NUMCHECK_HAVE_CUDA}, OpenBLAS ${TE_NUMCHECK_OPENBLAS_LIBRARY}")
