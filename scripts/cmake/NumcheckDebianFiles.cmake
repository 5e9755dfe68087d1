# Run by cpack after installation and before packing: what a .deb has otherwise than an archive.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
file(GLOB_RECURSE page LIST_DIRECTORIES false "${CPACK_TEMPORARY_DIRECTORY}/te-numcheck.1")
get_filename_component(share "${page}" DIRECTORY)
get_filename_component(share "${share}/../.." ABSOLUTE)
set(documents "${share}/doc/te-numcheck")

# `copyright` has the licences, and Debian's own copies of the longer ones are on every system.
file(REMOVE_RECURSE "${documents}/LICENSE" "${documents}/third-party")

# Debian's form of a changelog. SOURCE_DATE_EPOCH, if set, is its date.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${documents}/changelog"
  "te-numcheck (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
  "  * This version of te-numcheck; CHANGELOG.md has what changed.\n\n"
  " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
execute_process(COMMAND gzip -9nf "${page}" "${documents}/changelog" COMMAND_ERROR_IS_FATAL ANY)
