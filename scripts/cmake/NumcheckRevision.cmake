# cmake -DSOURCE=dir -DOUTPUT=file -P NumcheckRevision.cmake
# Writes the commit of the source tree and whether it has local changes as two C++ constants; touches the file only when
# they change. A tree without git (a release archive) has the revision "unknown".
find_program(git git)
set(revision "unknown")
set(dirty "false")
if(git AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND "${git}" rev-parse --short=12 HEAD WORKING_DIRECTORY "${SOURCE}"
                  OUTPUT_VARIABLE commit RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(revision "${commit}")
    execute_process(COMMAND "${git}" --no-optional-locks status --porcelain --untracked-files=no
                    WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE changes ERROR_QUIET)
    if(changes)
      set(dirty "true")
    endif()
  endif()
endif()
set(content "constexpr const char* kRevision = \"${revision}\";\nconstexpr bool kDirty = ${dirty};\n")
set(previous "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" previous)
endif()
if(NOT content STREQUAL previous)
  file(WRITE "${OUTPUT}" "${content}")
endif()
