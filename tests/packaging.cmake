# Tests of the installed tree and the packages: the program starts from any folder, with the libraries that a host may lack.
add_test(NAME packaging_install_is_relocatable
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DBUILD=${PROJECT_BINARY_DIR} -DREADELF=${CMAKE_READELF} -DVERSION=${PROJECT_VERSION}
          -DWORK=${CMAKE_CURRENT_BINARY_DIR}/packaging -P ${CMAKE_CURRENT_LIST_DIR}/cli/install_is_relocatable.cmake)

find_program(NUMCHECK_DPKG_DEB dpkg-deb)
find_program(NUMCHECK_LINTIAN lintian)
mark_as_advanced(NUMCHECK_DPKG_DEB NUMCHECK_LINTIAN)
add_test(NAME packaging_packages_hold_the_program
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DBUILD=${PROJECT_BINARY_DIR} -DREADELF=${CMAKE_READELF} -DCPACK=${CMAKE_CPACK_COMMAND}
          "-DDPKG_DEB=$<$<BOOL:${NUMCHECK_DPKG_DEB}>:${NUMCHECK_DPKG_DEB}>"
          "-DLINTIAN=$<$<BOOL:${NUMCHECK_LINTIAN}>:${NUMCHECK_LINTIAN}>" -DWORK=${CMAKE_CURRENT_BINARY_DIR}/packages
          -P ${CMAKE_CURRENT_LIST_DIR}/cli/packages_hold_the_program.cmake)
# Both write the build folder's list of installed files.
set_tests_properties(packaging_install_is_relocatable packaging_packages_hold_the_program PROPERTIES
  LABELS cli TIMEOUT 600 RESOURCE_LOCK installation)

# CI has a CUDA toolkit; without one, the build system must work as well.
add_test(NAME configures_without_cuda
  COMMAND "${CMAKE_COMMAND}" -S "${PROJECT_SOURCE_DIR}" -B "${CMAKE_CURRENT_BINARY_DIR}/without_cuda" -G "${CMAKE_GENERATOR}"
    -DTE_NUMCHECK_CUDA=OFF -DTE_NUMCHECK_TESTS=ON)
set_tests_properties(configures_without_cuda PROPERTIES LABELS unit TIMEOUT 300)
