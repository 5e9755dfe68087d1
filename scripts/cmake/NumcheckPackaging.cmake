# Installation (a relocatable tree) and packages (.tar.gz, .deb).
#
#   bin/te-numcheck   lib/ (libraries that a bare host lacks)   share/te-numcheck/configs/   share/doc/te-numcheck/

include(GNUInstallDirs)

# Where the loader looks for libraries that are not the system's: beside the binary, then in NVIDIA's wheel layout. The
# build tree's binary is linked with the same path, because a path that CMake changes at installation ends in a colon, and
# an empty entry means the working folder, from which the loader must never load a library. Folders of libraries found
# outside the system (CMAKE_PREFIX_PATH, conda) come last.
set_target_properties(te-numcheck PROPERTIES
  BUILD_WITH_INSTALL_RPATH ON
  INSTALL_RPATH_USE_LINK_PATH ON
  INSTALL_RPATH "$ORIGIN/../lib:$ORIGIN/../nvidia/cu13/lib:$ORIGIN/../nvidia/cudnn/lib")

# The program proper. The libraries that it links dynamically (fmt; where there is no static one, OpenBLAS and xxHash)
# are a component of their own: the .tar.gz contains them, the .deb depends on their packages.
install(TARGETS te-numcheck
  RUNTIME_DEPENDENCY_SET numcheck_libraries
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(RUNTIME_DEPENDENCY_SET numcheck_libraries
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so" "^lib(cuda|nvidia)"
  LIBRARY DESTINATION lib COMPONENT libraries)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs" DESTINATION share/te-numcheck COMPONENT program)
foreach(document IN ITEMS README.md CHANGELOG.md LICENSE)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${document}")
    install(FILES "${PROJECT_SOURCE_DIR}/${document}" DESTINATION share/doc/te-numcheck COMPONENT program)
  endif()
endforeach()

# Notices of the libraries whose code the packages carry.
foreach(package IN ITEMS libfmt-dev libxxhash-dev libopenblas-dev nlohmann-json3-dev libcli11-dev libeigen3-dev)
  if(EXISTS "/usr/share/doc/${package}/copyright")
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION share/doc/te-numcheck/third-party
            RENAME ${package} COMPONENT program)
  endif()
endforeach()

set(CPACK_PACKAGE_NAME te-numcheck)
set(CPACK_PACKAGE_VENDOR "the te-numcheck authors")
set(CPACK_PACKAGE_CONTACT "the te-numcheck authors <te-numcheck@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_FILE_NAME "te-numcheck-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/NumcheckCPackOptions.cmake")

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# Debian has no packages of CUDA and cuDNN to depend on; `te-numcheck doctor` says what is missing.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcuda1")
find_program(NUMCHECK_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(NUMCHECK_SHLIBDEPS)
if(NUMCHECK_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libstdc++6, libfmt9")
endif()
include(CPack)
