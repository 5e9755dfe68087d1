#include "commands/commands.hpp"

namespace numcheck::app::commands {

std::vector<std::unique_ptr<Command>> make_all() {
  std::vector<std::unique_ptr<Command>> all;
  all.push_back(make_run_command());
  all.push_back(make_list_command());
  all.push_back(make_validate_command());
  all.push_back(make_explain_command());
  all.push_back(make_diagnose_command());
  all.push_back(make_merge_command());
  all.push_back(make_contract_command());
  all.push_back(make_compare_command());
  all.push_back(make_report_command());
  all.push_back(make_exec_command());
  all.push_back(make_doctor_command());
  all.push_back(make_schema_command());
  all.push_back(make_completion_command());
  all.push_back(make_man_command());
  return all;
}

}  // namespace numcheck::app::commands
