# Tests of lib/data.
numcheck_test(data_test LABEL unit
  SOURCES unit/data/activations_test.cpp unit/data/distribution_test.cpp unit/data/exact_test.cpp
          unit/data/generator_test.cpp unit/data/inputs_test.cpp unit/data/one_hot_test.cpp unit/data/patterns_test.cpp
          unit/data/rows_test.cpp unit/data/safetensors_test.cpp
  LIBRARIES numcheck_data nlohmann_json::nlohmann_json)
