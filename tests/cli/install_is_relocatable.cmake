# cmake -DSOURCE=dir -DBUILD=dir -DREADELF=tool -DVERSION=x.y.z -DWORK=dir -P install_is_relocatable.cmake
# Installs, moves the tree, and runs the binary from there: with its own libraries, and with its plans. Nothing in the tree
# names the folders in which it was built.

include("${CMAKE_CURRENT_LIST_DIR}/run_or_fail.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/no_build_path.cmake")

file(REMOVE_RECURSE "${WORK}")
# Packages are stripped, too: debug information names sources by its nature.
run_or_fail(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/installed" --strip)
file(RENAME "${WORK}/installed" "${WORK}/moved")
set(program "${WORK}/moved/bin/te-numcheck")

run_or_fail("${program}" --version)
if(NOT output MATCHES "${VERSION}")
  message(FATAL_ERROR "--version says: ${output}")
endif()
# The path that the documentation uses is found in the installation where the working folder has no such file.
file(MAKE_DIRECTORY "${WORK}/elsewhere")
run_or_fail("${program}" validate configs/plans/quick.json WORKING_DIRECTORY "${WORK}/elsewhere")

expect_no_build_path("${WORK}/moved" "${SOURCE}" "${BUILD}")

# Manual page and completions are where their readers look for them, and are those of this program.
foreach(pair IN ITEMS "share/man/man1/te-numcheck.1=man" "share/bash-completion/completions/te-numcheck=completion;bash"
        "share/zsh/site-functions/_te-numcheck=completion;zsh"
        "share/fish/vendor_completions.d/te-numcheck.fish=completion;fish")
  string(REGEX REPLACE "=.*" "" file "${pair}")
  string(REGEX REPLACE "^[^=]*=" "" arguments "${pair}")
  run_or_fail("${program}" ${arguments})
  file(READ "${WORK}/moved/${file}" installed)
  if(NOT installed STREQUAL output)
    message(FATAL_ERROR "${file} is not what te-numcheck ${arguments} prints")
  endif()
endforeach()

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
