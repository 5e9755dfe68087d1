# Tests of lib/worker, lib/run and lib/verdict.
#
# The test executable is its own worker: started with "exec --worker" it serves tasks on a fake device (unit/worker/fake.cpp).
numcheck_test(run_test LABEL unit BRISK TIMEOUT 300
  SOURCES unit/worker/main.cpp unit/worker/fake.cpp unit/worker/support.cpp
          unit/worker/transport_test.cpp unit/worker/protocol_test.cpp unit/worker/workers_test.cpp unit/worker/failures_test.cpp
          unit/worker/idle_deaths_test.cpp unit/worker/questions_test.cpp unit/run/interrupts_test.cpp
          unit/run/journal_test.cpp unit/worker/in_process_test.cpp unit/worker/surroundings_test.cpp unit/worker/versions_test.cpp
  LIBRARIES numcheck_run numcheck_plan numcheck_data numcheck_op numcheck_core numcheck_machine
            nlohmann_json::nlohmann_json fmt::fmt Threads::Threads)

target_compile_definitions(run_test PRIVATE TE_NUMCHECK_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

# 50 000 mutations by default; TE_NUMCHECK_MUTATIONS=1000000 takes two minutes.
numcheck_test(run_journal_text_test LABEL unit BRISK
  SOURCES unit/run/journal_text_test.cpp unit/run/journal_mutation_test.cpp
  LIBRARIES numcheck_run numcheck_report numcheck_tolerance numcheck_metric numcheck_plan numcheck_data numcheck_op
            numcheck_core numcheck_machine nlohmann_json::nlohmann_json)

numcheck_test(machine_test LABEL unit
  SOURCES unit/machine/device_test.cpp unit/machine/environment_test.cpp unit/machine/memory_test.cpp unit/machine/search_path_test.cpp
  LIBRARIES numcheck_machine numcheck_core)

numcheck_test(run_pipeline_test LABEL unit BRISK
  SOURCES unit/run/budget_test.cpp unit/verdict/compared_port_test.cpp unit/verdict/conclude_test.cpp unit/verdict/constant_output_test.cpp unit/verdict/doubt_test.cpp unit/verdict/element_errors_test.cpp unit/run/configuration_survey_test.cpp unit/run/memory_gate_test.cpp unit/run/copy.cpp unit/run/pipeline_test.cpp
          unit/run/result_collector_test.cpp unit/run/trace_json_test.cpp
          unit/run/evaluation_queue_test.cpp unit/run/references_given_up_test.cpp unit/run/lost_sizes_test.cpp unit/run/work_watch_test.cpp unit/run/version_cases_test.cpp
  LIBRARIES numcheck_run numcheck_report numcheck_tolerance numcheck_metric numcheck_plan numcheck_data numcheck_op
            numcheck_core numcheck_machine nlohmann_json::nlohmann_json fmt::fmt)

numcheck_test(evaluation_queue_memory_test LABEL unit BRISK
  SOURCES unit/run/evaluation_queue_memory_test.cpp
  LIBRARIES numcheck_run numcheck_core)

# A fault of the device costs one case, whichever call it surfaces in. This executable is its own worker, too.
numcheck_test(containment_test LABEL unit BRISK TIMEOUT 300
  SOURCES unit/containment/containment_test.cpp unit/containment/faulty_device.cpp
  LIBRARIES numcheck_app)
