# Options, build type and compile flags. Flags live on the INTERFACE target numcheck_flags; nothing is global.

set(TE_NUMCHECK_CUDA AUTO CACHE STRING "CUDA backends: AUTO (if a toolkit is found), ON (required), OFF")
set_property(CACHE TE_NUMCHECK_CUDA PROPERTY STRINGS AUTO ON OFF)
option(TE_NUMCHECK_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
set(TE_NUMCHECK_REVISION "" CACHE STRING "Commit that the program names, for source trees without git")
option(TE_NUMCHECK_UNITY "Compile several sources at a time where that saves much (numcheck_unity); for builds from scratch" OFF)
option(TE_NUMCHECK_FUZZ "Build the libFuzzer targets; needs clang and the preset's flags" OFF)
option(TE_NUMCHECK_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(numcheck_flags INTERFACE)
target_compile_features(numcheck_flags INTERFACE cxx_std_20)
# -ffp-contract=off keeps digests equal on every machine; without the other two our loops do not vectorise.
target_compile_options(numcheck_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off;-fno-math-errno;-fno-trapping-math>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wconversion;-Wno-sign-conversion;-Wnon-virtual-dtor;-Wno-missing-field-initializers>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${TE_NUMCHECK_WERROR}>>:-Werror>
  # These come from the optimiser and are wrong about std::string, std::variant and JSON objects in g++ 12 and 13.
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-maybe-uninitialized;-Wno-stringop-overflow>
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-stringop-overread>)

# For libraries whose messages name the source file of a failed call: without the map, the binary would carry the folder in
# which it was built. tests/packaging.cmake checks that none does.
add_library(numcheck_source_names INTERFACE)
target_compile_options(numcheck_source_names INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)

# Hardening: input from plans, reports and workers must at worst end the program with a message. The C library checks
# sizes only in optimised code; elsewhere a sanitizer sees more.
include(CheckPIESupported)
check_pie_supported()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
target_compile_options(numcheck_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fstack-protector-strong>)
target_compile_definitions(numcheck_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  target_compile_options(numcheck_flags INTERFACE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=2>)
endif()
target_link_options(numcheck_flags INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack)
