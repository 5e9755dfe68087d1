// The commands of the program, one file each.
#pragma once

#include <memory>

#include "command.hpp"

namespace numcheck::app::commands {

[[nodiscard]] std::unique_ptr<Command> make_run_command();
[[nodiscard]] std::unique_ptr<Command> make_list_command();
[[nodiscard]] std::unique_ptr<Command> make_validate_command();
[[nodiscard]] std::unique_ptr<Command> make_explain_command();
[[nodiscard]] std::unique_ptr<Command> make_report_command();
[[nodiscard]] std::unique_ptr<Command> make_exec_command();
[[nodiscard]] std::unique_ptr<Command> make_compare_command();
[[nodiscard]] std::unique_ptr<Command> make_contract_command();
[[nodiscard]] std::unique_ptr<Command> make_diagnose_command();
[[nodiscard]] std::unique_ptr<Command> make_merge_command();
[[nodiscard]] std::unique_ptr<Command> make_doctor_command();
[[nodiscard]] std::unique_ptr<Command> make_schema_command();
[[nodiscard]] std::unique_ptr<Command> make_completion_command();
[[nodiscard]] std::unique_ptr<Command> make_man_command();

}  // namespace numcheck::app::commands
