# Tests of the report library, of app's own parts, and of the command line.
numcheck_test(report_test LABEL unit
  SOURCES unit/report/console_test.cpp unit/report/override_table_test.cpp unit/report/record_json_test.cpp
  LIBRARIES numcheck_report nlohmann_json::nlohmann_json)
