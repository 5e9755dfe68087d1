// Regular expressions from the command line, which may be hostile: bounded time, bounded stack.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::app {

/// An ECMAScript regular expression without look-ahead and back-references, which an automaton cannot match.
///
/// std::regex backtracks (forever on "(.+)+y") and recurses as deeply as an expression nests and a text is long. So we
/// use its breadth-first executor, whose time is O(states x length), limit the states, and both compile and match on a
/// thread whose stack is larger than the limits can need.
class Pattern {
 public:
  static constexpr std::size_t kMaxBytes = 2000;

  /// `option` names it in messages. Throws core::UsageError for an expression that is invalid, unsupported, too long or
  /// too large; core::EnvironmentError if no thread can be started.
  Pattern(std::string_view expression, std::string_view option);
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// For each text, whether the expression matches anywhere in it.
  [[nodiscard]] std::vector<bool> found_in(std::span<const std::string_view> texts) const;

 private:
  struct Automaton;
  std::unique_ptr<Automaton> automaton_;
};

}  // namespace numcheck::app
