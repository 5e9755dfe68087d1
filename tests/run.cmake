# The test executable is its own worker: started with "exec --worker" it serves tasks on a fake device (run_fake.cpp).
numcheck_test(run_test LABEL unit TIMEOUT 300
  SOURCES unit/run_main.cpp unit/run_fake.cpp unit/run_support.cpp
          unit/run_transport_test.cpp unit/run_protocol_test.cpp unit/run_workers_test.cpp unit/run_failures_test.cpp
          unit/run_idle_deaths_test.cpp unit/run_questions_test.cpp unit/run_interrupts_test.cpp
          unit/run_journal_test.cpp unit/run_in_process_test.cpp unit/run_surroundings_test.cpp unit/run_versions_test.cpp
  LIBRARIES numcheck_workers numcheck_plan numcheck_data numcheck_op numcheck_core numcheck_machine
            nlohmann_json::nlohmann_json fmt::fmt Threads::Threads)

# The mutations are 50 000; TE_NUMCHECK_MUTATIONS=1000000 takes two minutes.
numcheck_test(run_journal_text_test LABEL unit
  SOURCES unit/run_journal_text_test.cpp unit/run_journal_mutation_test.cpp
  LIBRARIES numcheck_workers numcheck_report numcheck_tolerance numcheck_metric numcheck_plan numcheck_data numcheck_op
            numcheck_core numcheck_machine nlohmann_json::nlohmann_json)
target_include_directories(run_journal_text_test PRIVATE unit)

numcheck_test(machine_test LABEL unit
  SOURCES unit/machine_device_test.cpp unit/machine_environment_test.cpp unit/machine_memory_test.cpp unit/machine_search_path_test.cpp
  LIBRARIES numcheck_machine numcheck_core)

numcheck_test(run_pipeline_test LABEL unit
  SOURCES unit/run_budget_test.cpp unit/run_compared_port_test.cpp unit/run_conclude_test.cpp unit/run_constant_output_test.cpp unit/run_copy.cpp unit/run_pipeline_test.cpp
          unit/run_stuck_watch_test.cpp unit/run_version_cases_test.cpp
  LIBRARIES numcheck_run numcheck_report numcheck_tolerance numcheck_metric numcheck_plan numcheck_data numcheck_op
            numcheck_core numcheck_machine nlohmann_json::nlohmann_json fmt::fmt)

# One fault of the device costs one case, at whatever call it surfaces. This executable is its own worker, too.
numcheck_test(containment_test LABEL unit TIMEOUT 300
  SOURCES unit/containment/containment_test.cpp unit/containment/faulty_device.cpp
  LIBRARIES numcheck_app)
