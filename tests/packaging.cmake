# The installed tree starts from any folder and brings the libraries that a bare host lacks.
add_test(NAME packaging_install_is_relocatable
  COMMAND ${CMAKE_COMMAND} -DBUILD=${PROJECT_BINARY_DIR} -DREADELF=${CMAKE_READELF} -DVERSION=${PROJECT_VERSION}
          -DWORK=${CMAKE_CURRENT_BINARY_DIR}/packaging -P ${CMAKE_CURRENT_LIST_DIR}/cli/install_is_relocatable.cmake)
set_tests_properties(packaging_install_is_relocatable PROPERTIES LABELS cli TIMEOUT 120)
