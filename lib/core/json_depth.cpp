#include "core/json_depth.hpp"

namespace numcheck::core {

bool nests_deeper(std::string_view json, std::size_t limit) noexcept {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    switch (json[i]) {
      case '"':
        in_string = !in_string;
        break;
      case '\\':
        i += in_string ? 1 : 0;
        break;
      case '[':
      case '{':
        depth += in_string ? 0 : 1;
        if (depth > limit) {
          return true;
        }
        break;
      case ']':
      case '}':
        depth -= in_string || depth == 0 ? 0 : 1;
        break;
      default:
        break;
    }
  }
  return false;
}

}  // namespace numcheck::core
