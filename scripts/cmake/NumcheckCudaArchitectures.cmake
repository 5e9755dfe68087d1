# Every architecture from sm_80 to sm_120 that this toolkit knows, and PTX of the newest.
# CI and local builds override this with -DCMAKE_CUDA_ARCHITECTURES=80-real;90-real to save time.
execute_process(COMMAND "${CUDAToolkit_BIN_DIR}/nvcc" --list-gpu-code OUTPUT_VARIABLE known OUTPUT_STRIP_TRAILING_WHITESPACE)
set(architectures "")
set(newest "")
foreach(arch IN ITEMS 80 86 89 90 100 120)
  if(known MATCHES "sm_${arch}(\n|$)")
    list(APPEND architectures ${arch}-real)
    set(newest ${arch}-virtual)
  endif()
endforeach()
list(APPEND architectures ${newest})
set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "CUDA architectures")
