# cmake -DBUILD=dir -DREADELF=tool -DVERSION=x.y.z -DWORK=dir -P install_is_relocatable.cmake
# Installs, moves the tree, and runs the binary from there: with its own libraries, and with its plans.

include("${CMAKE_CURRENT_LIST_DIR}/run_or_fail.cmake")

file(REMOVE_RECURSE "${WORK}")
run_or_fail(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/installed")
file(RENAME "${WORK}/installed" "${WORK}/moved")
set(program "${WORK}/moved/bin/te-numcheck")

run_or_fail("${program}" --version)
if(NOT output MATCHES "${VERSION}")
  message(FATAL_ERROR "--version says: ${output}")
endif()
# The path that the documentation uses is found in the installation where the working folder has no such file.
file(MAKE_DIRECTORY "${WORK}/elsewhere")
run_or_fail("${program}" validate configs/plans/quick.json WORKING_DIRECTORY "${WORK}/elsewhere")

run_or_fail("${READELF}" -d "${program}")
if(NOT output MATCHES "RUNPATH[^\n]*\\[\\$ORIGIN/\\.\\./lib:\\$ORIGIN/\\.\\./nvidia/cu13/lib:\\$ORIGIN/\\.\\./nvidia/cudnn/lib(:/[^]:]+)*\\]")
  message(FATAL_ERROR "unexpected run path in\n${output}")
endif()

# Every library that the program names is the C and C++ run-time or lies in lib/.
string(REGEX MATCHALL "NEEDED[^\n]*\\[[^]\n]*" needed "${output}")
foreach(line IN LISTS needed)
  string(REGEX REPLACE ".*\\[" "" name "${line}")
  if(NOT name MATCHES "^(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so\\..*)$"
     AND NOT EXISTS "${WORK}/moved/lib/${name}")
    message(FATAL_ERROR "${name} is needed, and is not in the installed lib/")
  endif()
endforeach()
file(REMOVE_RECURSE "${WORK}")
