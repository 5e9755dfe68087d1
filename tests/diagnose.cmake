# Tests of lib/diagnose. Its command has tests of its own (cli/test_diagnose.py), and so do its verdicts on planted faults
# (detect/test_diagnoses.py).
numcheck_test(diagnose_test LABEL unit
  SOURCES unit/diagnose/crop_attention_test.cpp unit/diagnose/crop_test.cpp unit/diagnose/fit_test.cpp unit/diagnose/likeness_test.cpp unit/diagnose/typed_numbers_test.cpp
  LIBRARIES numcheck_diagnose numcheck_data numcheck_op numcheck_core GTest::gmock)
