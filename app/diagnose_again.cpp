#include "diagnose_again.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "reproduce.hpp"

namespace numcheck::app {

std::string diagnose_again(const TensorOptions& tensors, const DiagnosedFiles& files,
                           const diagnose::Subject& subject) {
  std::string text = fmt::format("te-numcheck diagnose {}", subject.c.op->name);
  const auto add = [&text](std::string_view option, const std::string& value) {
    text += value.empty() ? std::string() : fmt::format(" {} {}", option, shell_word(value));
  };
  const auto add_all = [&add](std::string_view option, const std::vector<std::string>& values) {
    for (const std::string& value : values) {
      add(option, as_argument(value));  // a name, a setting or the path of a file
    }
  };
  // The case of the subject may be that of a first cause.
  const plan::Case& c = subject.declared ? *subject.declared : subject.c;
  add("--mode", std::string(c.mode->name));
  add_all("--tensors", tensors.files);
  add_all("--map", tensors.map);
  add_all("--in", tensors.inputs);
  add_all("--out", tensors.outputs);
  add_all("--dtype", tensors.dtypes);
  add("--against", as_argument(files.against));
  add("--device", files.device);
  add("--effort", files.effort);
  add_all("--param", tensors.params);
  const std::vector<op::Field>& fields = c.op->fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string begin = fmt::format("{}=", fields[i].name);
    const bool is_given =
        std::ranges::any_of(tensors.params, [&begin](const std::string& given) { return given.starts_with(begin); });
    if (!fields[i].required && !is_given && c.params[i] != fields[i].fallback) {
      add("--param", begin + op::param_text(c.params[i]));
    }
  }
  return text;
}

}  // namespace numcheck::app
