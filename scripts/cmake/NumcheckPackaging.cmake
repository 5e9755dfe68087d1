# Installation (a relocatable tree) and packages (.tar.gz, .deb).
#
#   bin/te-numcheck   lib/ (libraries that a bare host lacks)   share/te-numcheck/configs/   share/doc/te-numcheck/
#   share/man/man1/te-numcheck.1   completions of bash, zsh and fish, where these shells look for those of packages

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
install(DIRECTORY "${PROJECT_SOURCE_DIR}/configs" DESTINATION share/te-numcheck COMPONENT program USE_SOURCE_PERMISSIONS)
install(FILES README.md CHANGELOG.md LICENSE scripts/debian/copyright DESTINATION share/doc/te-numcheck COMPONENT program)

# The program writes its manual page and completions itself, when it is installed: they always are those of its options.
set(numcheck_documents "${PROJECT_BINARY_DIR}/documents")
install(CODE "
  include(\"${CMAKE_CURRENT_LIST_DIR}/NumcheckDocuments.cmake\")
  numcheck_documents(\"$<TARGET_FILE:te-numcheck>\" \"${numcheck_documents}\")" COMPONENT program)
install(FILES "${numcheck_documents}/te-numcheck.1" DESTINATION share/man/man1 COMPONENT program)
install(FILES "${numcheck_documents}/te-numcheck.bash" DESTINATION share/bash-completion/completions RENAME te-numcheck
        COMPONENT program)
install(FILES "${numcheck_documents}/te-numcheck.zsh" DESTINATION share/zsh/site-functions RENAME _te-numcheck
        COMPONENT program)
install(FILES "${numcheck_documents}/te-numcheck.fish" DESTINATION share/fish/vendor_completions.d COMPONENT program)

# Notices of the libraries whose code the packages carry.
foreach(package IN ITEMS libfmt-dev libxxhash-dev libopenblas-dev nlohmann-json3-dev libcli11-dev libeigen3-dev libjs-chart.js)
  if(EXISTS "/usr/share/doc/${package}/copyright")
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION share/doc/te-numcheck/third-party
            RENAME ${package} COMPONENT program)
  endif()
endforeach()

set(CPACK_PACKAGE_NAME te-numcheck)
set(CPACK_PACKAGE_VENDOR "the te-numcheck authors")
# Whoever builds a package for others maintains it; Debian's tools take the name from the same variables.
set(maintainer "the te-numcheck authors <te-numcheck@localhost>")
if(NOT "$ENV{DEBEMAIL}" STREQUAL "" AND NOT "$ENV{DEBFULLNAME}" STREQUAL "")
  set(maintainer "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(TE_NUMCHECK_MAINTAINER "${maintainer}" CACHE STRING "Maintainer of the packages: NAME <ADDRESS>")
set(CPACK_PACKAGE_CONTACT "${TE_NUMCHECK_MAINTAINER}")
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
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"te-numcheck runs operations in FP32, TF32, BF16, FP16 and FP8 on a GPU,
computes the same operations from the same bits in double precision on the
CPU, and judges the difference by how far correct arithmetic of that kind
can be off. It says which precision really ran, what environment variables
changed, and how to run a failing case alone.")
# The packages of NVIDIA's repository. Debian itself has none to depend on; `te-numcheck doctor` says what is missing.
if(NUMCHECK_HAVE_CUDA)
  set(cuda "${CUDAToolkit_VERSION_MAJOR}")
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcublas-${cuda}-${CUDAToolkit_VERSION_MINOR}, libcudnn9-cuda-${cuda}")
endif()
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libcuda1")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
    WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS "${CMAKE_CURRENT_LIST_DIR}/NumcheckDebianFiles.cmake")
find_program(NUMCHECK_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(NUMCHECK_SHLIBDEPS)
if(NUMCHECK_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libstdc++6, libfmt9")
endif()
include(CPack)
