# expect_no_build_path(tree folder...): fails if a file of an installed tree names one of the folders in which it was built.
function(expect_no_build_path tree)
  file(GLOB_RECURSE files LIST_DIRECTORIES false "${tree}/*")
  foreach(folder IN LISTS ARGN)
    string(REGEX REPLACE "([][+.*()^$?|\\])" "\\\\\\1" pattern "${folder}")
    foreach(file IN LISTS files)
      # A longer path that only ends in the folder's name is another one.
      file(STRINGS "${file}" found LIMIT_COUNT 3 REGEX "(^|[^A-Za-z0-9_./-])${pattern}(/|$)")
      if(found)
        message(FATAL_ERROR "${file} names the folder in which it was built: ${found}")
      endif()
    endforeach()
  endforeach()
endfunction()
