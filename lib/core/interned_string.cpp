#include "core/interned_string.hpp"

#include <functional>
#include <mutex>
#include <unordered_set>

namespace numcheck::core {
namespace {

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
};

class Table {
 public:
  const std::string* find_or_add(std::string_view text) {
    const std::scoped_lock lock(mutex_);
    const auto found = texts_.find(text);
    return &*(found != texts_.end() ? found : texts_.emplace(text).first);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<std::string, Hash, std::equal_to<>> texts_;  // its elements stay where they are
};

/// Never destroyed: other static objects may hold interned strings.
Table& table() {
  static Table& only = *new Table;
  return only;
}

}  // namespace

InternedString::InternedString() : InternedString(std::string_view()) {}

const std::string* InternedString::find_or_add(std::string_view text) {
  return table().find_or_add(text);
}

}  // namespace numcheck::core
