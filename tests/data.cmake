# Tests of lib/data.
numcheck_test(data_test LABEL unit BRISK
  SOURCES unit/data/activations_test.cpp unit/data/delayed_scaling_test.cpp unit/data/distribution_test.cpp unit/data/exact_test.cpp
          unit/data/generator_test.cpp unit/data/inputs_test.cpp unit/data/one_hot_test.cpp unit/data/patterns_test.cpp
          unit/data/python_files_test.cpp unit/data/read_npy_test.cpp unit/data/read_safetensors_test.cpp
          unit/data/rows_test.cpp unit/data/safetensors_test.cpp unit/data/tensor_file_test.cpp
          unit/data/tensor_values_test.cpp
  LIBRARIES numcheck_data nlohmann_json::nlohmann_json)
target_compile_definitions(data_test PRIVATE TE_NUMCHECK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
