# Read by cpack once per generator.
set(CPACK_COMPONENTS_ALL program libraries)
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL program)
endif()
