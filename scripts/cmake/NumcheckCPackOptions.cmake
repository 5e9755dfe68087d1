# Read by cpack once per generator.
set(CPACK_COMPONENTS_ALL program libraries)
# An archive unpacks into a single folder.
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENTS_ALL program)
  # With it, the package would install into /te-numcheck-.../usr.
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY OFF)
endif()
