# Tests of the report library, of app's own parts, and of the command line.
numcheck_test(report_test LABEL unit BRISK
  SOURCES unit/report/brief_test.cpp unit/report/causes_test.cpp unit/report/class_borders_test.cpp unit/report/comparison_test.cpp unit/report/console_test.cpp unit/report/failures_test.cpp unit/report/html_test.cpp
          unit/report/library_table_test.cpp unit/report/override_table_test.cpp unit/report/picture_test.cpp unit/report/precision_map_test.cpp
          unit/report/contract_test.cpp unit/report/merge_test.cpp unit/report/stored_report_test.cpp unit/report/record_json_test.cpp
  LIBRARIES numcheck_report nlohmann_json::nlohmann_json)

numcheck_test(app_test LABEL unit BRISK
  SOURCES unit/app/catalog_test.cpp unit/app/character_set_test.cpp unit/app/derived_contract_test.cpp unit/app/page_text_test.cpp unit/app/pattern_test.cpp unit/app/screen_text_test.cpp unit/app/shard_test.cpp
          unit/app/terminal_test.cpp
  LIBRARIES numcheck_app)
target_compile_definitions(app_test PRIVATE TE_NUMCHECK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# Optional: ninja verdict_bench
find_package(benchmark QUIET)
if(benchmark_FOUND)
  add_executable(verdict_bench EXCLUDE_FROM_ALL bench/verdict_bench.cpp)
  target_link_libraries(verdict_bench PRIVATE
    numcheck_app numcheck_verdict numcheck_prepare numcheck_harness numcheck_sim numcheck_plan fmt::fmt numcheck_flags
    benchmark::benchmark)
endif()

# Prefers the system's Python, which has python3-jsonschema; a virtual environment may lack it.
find_program(TE_NUMCHECK_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(TE_NUMCHECK_PYTHON NAMES python3)
# Tests that import NumPy, which a virtual environment is likelier to have.
find_program(TE_NUMCHECK_NUMPY_PYTHON NAMES python3)
if(TE_NUMCHECK_PYTHON)
  # A library to preload that reports 16 processors.
  add_library(many_cpus SHARED cli/many_cpus.cpp)
  target_link_libraries(many_cpus PRIVATE numcheck_flags)
  file(GLOB cli_tests RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" CONFIGURE_DEPENDS cli/test_*.py)
  foreach(file IN LISTS cli_tests)
    string(REGEX REPLACE "^cli/test_(.*)\\.py$" "\\1" area "${file}")
    file(STRINGS "${file}" numpy REGEX "^ *import numpy")
    set(python "${TE_NUMCHECK_PYTHON}")
    if(numpy AND TE_NUMCHECK_NUMPY_PYTHON)
      set(python "${TE_NUMCHECK_NUMPY_PYTHON}")
    endif()
    add_test(NAME cli_${area} COMMAND "${python}" -B "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    set_tests_properties(cli_${area} PROPERTIES LABELS cli TIMEOUT 600
      ENVIRONMENT "TE_NUMCHECK=$<TARGET_FILE:te-numcheck>;TE_NUMCHECK_SOURCE=${PROJECT_SOURCE_DIR};TE_FAKE_LIBRARY=$<TARGET_FILE:te_fake>;TE_MANY_CPUS=$<TARGET_FILE:many_cpus>;TE_FAKE_VERSIONS=$<TARGET_FILE:fake_versions>")
  endforeach()
else()
  message(WARNING "te-numcheck: no python3 was found; the command line tests are left out")
endif()
