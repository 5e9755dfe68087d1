# cmake -DSOURCE=dir -DOUTPUT=file -DREVISION=commit -P NumcheckRevision.cmake
# Writes the commit of the source tree, its date and whether the tree has local changes as C++ constants; touches the file
# only when they change. A tree without git (a release archive) has the revision that REVISION names, or "unknown".
find_program(git git)
set(revision "unknown")
if(REVISION MATCHES "^[0-9a-f]+$")
  string(SUBSTRING "${REVISION}" 0 12 revision)
endif()
set(date "")
set(dirty "false")
if(git AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${git}" rev-parse --short=12 HEAD WORKING_DIRECTORY "${SOURCE}"
                  OUTPUT_VARIABLE commit RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(revision "${commit}")
    execute_process(COMMAND "${git}" show --no-patch --format=%cs HEAD WORKING_DIRECTORY "${SOURCE}"
                    OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND "${git}" --no-optional-locks status --porcelain --untracked-files=no
                    WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(dirty "true")
    endif()
  endif()
endif()
set(content "constexpr const char* kRevision = \"${revision}\";\nconstexpr const char* kDate = \"${date}\";\nconstexpr bool kDirty = ${dirty};\n")
set(previous "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" previous)
endif()
if(NOT content STREQUAL previous)
  file(WRITE "${OUTPUT}" "${content}")
endif()
