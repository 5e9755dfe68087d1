# numcheck_documents(program folder): writes the program's manual page and completion scripts into the folder.
function(numcheck_documents program folder)
  file(MAKE_DIRECTORY "${folder}")
  foreach(document IN ITEMS "1=man" "bash=completion;bash" "zsh=completion;zsh" "fish=completion;fish")
    list(TRANSFORM document REPLACE "^[^=]*=" "" AT 0 OUTPUT_VARIABLE arguments)
    string(REGEX REPLACE "=.*" "" ending "${document}")
    execute_process(COMMAND "${program}" ${arguments} OUTPUT_FILE "${folder}/te-numcheck.${ending}"
                    RESULT_VARIABLE status ERROR_VARIABLE error)
    if(NOT status EQUAL 0)
      list(JOIN arguments " " words)
      message(FATAL_ERROR "te-numcheck ${words} ended with ${status}: ${error}")
    endif()
  endforeach()
endfunction()
