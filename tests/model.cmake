# Tests of lib/model, and conformance with published rows and probes of real hardware.
set(TE_NUMCHECK_MMA_ROWS "${PROJECT_SOURCE_DIR}/../shared/data/mma_rows" CACHE PATH
    "Published multiply-add rows of real GPUs (model_validation of MATLAB-tensor-core); tests are skipped without it")

numcheck_test(model_mma_rows_test LABEL conformance
  SOURCES conformance/mma_rows_test.cpp
  LIBRARIES numcheck_model numcheck_core)
target_compile_definitions(model_mma_rows_test PRIVATE TE_NUMCHECK_MMA_ROWS="${TE_NUMCHECK_MMA_ROWS}")

numcheck_test(model_probes_test LABEL conformance
  SOURCES conformance/alignment_probes_test.cpp conformance/range_probes_test.cpp conformance/step_words_test.cpp
          conformance/probe_path.cpp
  LIBRARIES numcheck_model numcheck_core)

numcheck_test(model_statistics_test LABEL conformance
  SOURCES conformance/published_statistics_test.cpp
  LIBRARIES numcheck_model numcheck_op numcheck_core)

numcheck_test(model_unit_test LABEL unit
  SOURCES unit/model/epilogue_test.cpp unit/model/gemm_test.cpp unit/model/group_product_test.cpp unit/model/product_test.cpp unit/model/tables_test.cpp unit/model/steps.cpp
  LIBRARIES numcheck_model numcheck_op numcheck_core)

numcheck_test(model_sim_test LABEL unit
  SOURCES unit/sim/device_test.cpp unit/sim/faults_test.cpp unit/sim/perturbation_test.cpp unit/sim/device.cpp
  LIBRARIES numcheck_sim numcheck_model numcheck_op numcheck_core)
