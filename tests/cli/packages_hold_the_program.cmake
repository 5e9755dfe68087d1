# cmake -DBUILD=dir -DREADELF=tool -DCPACK=tool -DDPKG_DEB=tool-or-empty -DWORK=dir -P packages_hold_the_program.cmake
# Makes the packages, unpacks them and runs the program from there, with the plans that they bring.
include("${CMAKE_CURRENT_LIST_DIR}/run_or_fail.cmake")

# Fails unless the loader looks in folders beside the program only: an empty or relative entry is the working folder.
function(expect_run_path program)
  run_or_fail("${READELF}" -d "${program}")
  if(NOT output MATCHES "RUNPATH[^\n]*\\[\\$ORIGIN/[^]:]+(:(\\$ORIGIN)?/[^]:]+)*\\]")
    message(FATAL_ERROR "unexpected run path in\n${output}")
  endif()
endfunction()

# Fails unless the one file that matches the pattern is a program that finds its plans from another folder.
function(expect_program pattern)
  file(GLOB found "${pattern}")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "${count} files match ${pattern}")
  endif()
  run_or_fail("${found}" validate configs/plans/quick.json WORKING_DIRECTORY "${WORK}/elsewhere")
  expect_run_path("${found}")
endfunction()

# make_package(GENERATOR PATTERN): sets `package` to its path.
function(make_package generator pattern)
  run_or_fail("${CPACK}" -G ${generator} --config "${BUILD}/CPackConfig.cmake" -B "${WORK}")
  file(GLOB package "${WORK}/${pattern}")
  set(package "${package}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}/elsewhere" "${WORK}/archive" "${WORK}/system")

make_package(TGZ "*.tar.gz")
run_or_fail(${CMAKE_COMMAND} -E tar xf "${package}" WORKING_DIRECTORY "${WORK}/archive")
expect_program("${WORK}/archive/te-numcheck-*/bin/te-numcheck")

if(DPKG_DEB)
  make_package(DEB "*.deb")
  run_or_fail("${DPKG_DEB}" -x "${package}" "${WORK}/system")
  expect_program("${WORK}/system/usr/bin/te-numcheck")
endif()
file(REMOVE_RECURSE "${WORK}")
