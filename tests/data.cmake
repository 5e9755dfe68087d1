numcheck_test(data_test LABEL unit
  SOURCES unit/data_distribution_test.cpp unit/data_exact_test.cpp unit/data_generator_test.cpp
          unit/data_inputs_test.cpp unit/data_patterns_test.cpp unit/data_rows_test.cpp unit/data_safetensors_test.cpp
  LIBRARIES numcheck_data nlohmann_json::nlohmann_json)
