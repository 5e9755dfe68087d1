# run_or_fail(program argument... [WORKING_DIRECTORY folder]): sets `output` to what it wrote to stdout.
function(run_or_fail)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}\n${output}${error}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
