# Every file of reference/ that no other test has: an op's tests are added without editing this file.
file(GLOB move_sources CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" reference/*_test.cpp)
foreach(other IN ITEMS reference_test activation_test norm_test softmax_test)
  get_target_property(other_sources ${other} SOURCES)
  list(REMOVE_ITEM move_sources ${other_sources})
endforeach()
numcheck_test(move_test LABEL reference TIMEOUT 600
  SOURCES ${move_sources}
  LIBRARIES numcheck_reference numcheck_tolerance)
if(TE_NUMCHECK_MPFR_LIBRARY AND TE_NUMCHECK_MPFR_INCLUDE)
  target_link_libraries(move_test PRIVATE ${TE_NUMCHECK_MPFR_LIBRARY})
  target_include_directories(move_test SYSTEM PRIVATE ${TE_NUMCHECK_MPFR_INCLUDE})
  target_compile_definitions(move_test PRIVATE NUMCHECK_HAVE_MPFR)
endif()

numcheck_isa_sources(move_test "${CMAKE_CURRENT_SOURCE_DIR}/reference/lane_functions.cpp")
