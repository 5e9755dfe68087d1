# cmake -DBUILD=dir -DSOURCE=dir -DREADELF=tool -DCPACK=tool -DDPKG_DEB=tool-or-empty
#       -DLINTIAN=tool-or-empty -DWORK=dir -P packages_hold_the_program.cmake
# Makes the packages, unpacks them and runs the program from there, with the plans that they bring.
include("${CMAKE_CURRENT_LIST_DIR}/run_or_fail.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/no_build_path.cmake")

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

# Fails unless the tree has manual page, completions and the licences of everything that the program contains, and
# nothing in it names the folders of the build.
function(expect_documents share manual_page)
  foreach(file IN ITEMS "man/man1/${manual_page}" bash-completion/completions/te-numcheck zsh/site-functions/_te-numcheck
          fish/vendor_completions.d/te-numcheck.fish doc/te-numcheck/copyright doc/te-numcheck/README.md)
    file(SIZE "${share}/${file}" size)
    if(size EQUAL 0)
      message(FATAL_ERROR "${share}/${file} is empty")
    endif()
  endforeach()
  file(READ "${share}/doc/te-numcheck/copyright" copyright)
  foreach(library IN ITEMS fmt nlohmann_json CLI11 Eigen xxHash OpenBLAS Chart.js "CUDA runtime")
    if(NOT copyright MATCHES "\n  ${library} ")
      message(FATAL_ERROR "copyright does not say what the licence of ${library} is")
    endif()
  endforeach()
  string(REGEX MATCH "\nLicense: ([^\n]* and [^\n]*)\n" found "${copyright}")
  string(REPLACE " and " ";" licences "${CMAKE_MATCH_1}")
  foreach(licence IN LISTS licences)
    if(NOT copyright MATCHES "\nLicense: ${licence}\n [^\n]")
      message(FATAL_ERROR "copyright does not have the licence ${licence}")
    endif()
  endforeach()
  expect_no_build_path("${share}/.." "${SOURCE}" "${BUILD}")
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
file(GLOB top "${WORK}/archive/te-numcheck-*")
expect_documents("${top}/share" te-numcheck.1)

if(DPKG_DEB)
  make_package(DEB "*.deb")
  run_or_fail("${DPKG_DEB}" -x "${package}" "${WORK}/system")
  expect_program("${WORK}/system/usr/bin/te-numcheck")
  expect_documents("${WORK}/system/usr/share" te-numcheck.1.gz)
  if(LINTIAN)
    # The maintainer of a package that is built for oneself has no address; DEBFULLNAME and DEBEMAIL name another one.
    run_or_fail("${LINTIAN}" --allow-root --fail-on error,warning
                --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "${package}")
  endif()
  run_or_fail("${DPKG_DEB}" -f "${package}" Maintainer Section Description)
  if(NOT output MATCHES "Maintainer: [^<]+ <[^>]+@[^>]+>\nSection: science\nDescription: [^\n]+\n [^\n]+")
    message(FATAL_ERROR "unexpected fields in\n${output}")
  endif()
endif()
file(REMOVE_RECURSE "${WORK}")
