// The verbs, in the order of help.
#include "command.hpp"

namespace numcheck::app {

std::vector<std::unique_ptr<Command>> make_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_run_command());
  commands.push_back(make_list_command());
  commands.push_back(make_validate_command());
  commands.push_back(make_explain_command());
  commands.push_back(make_exec_command());
  commands.push_back(make_doctor_command());
  commands.push_back(make_schema_command());
  commands.push_back(make_completion_command());
  return commands;
}

}  // namespace numcheck::app
