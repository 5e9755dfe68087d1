# The test executable is its own worker: started with "exec --worker" it serves tasks on a fake device (run_fake.cpp).
numcheck_test(run_test LABEL unit TIMEOUT 300
  SOURCES unit/run_main.cpp unit/run_fake.cpp unit/run_transport.cpp unit/run_protocol.cpp unit/run_workers.cpp
          unit/run_failures.cpp unit/run_interrupts.cpp unit/run_journal.cpp unit/run_in_process.cpp
  LIBRARIES numcheck_workers numcheck_plan numcheck_data numcheck_op numcheck_core numcheck_machine
            nlohmann_json::nlohmann_json fmt::fmt Threads::Threads)

numcheck_test(machine_test LABEL unit
  SOURCES unit/machine_device.cpp unit/machine_environment.cpp unit/machine_memory.cpp
  LIBRARIES numcheck_machine numcheck_core)
