# Tests of lib/eligibility and of configs/attention_gates.json.
numcheck_test(eligibility_test LABEL unit
  SOURCES unit/eligibility/attention_gates_test.cpp unit/eligibility/gate_table_test.cpp
  LIBRARIES numcheck_eligibility numcheck_op numcheck_core fmt::fmt)
target_compile_definitions(eligibility_test PRIVATE TE_NUMCHECK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
