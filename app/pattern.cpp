// The limit on states must be defined before <regex> is included; it affects only templates with this file's own
// traits, so no other file sees it.
#define _GLIBCXX_REGEX_STATE_LIMIT 5000

#include "pattern.hpp"

#include <pthread.h>

#include <cstring>
#include <exception>
#include <regex>
#include <utility>

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/printable.hpp"

namespace numcheck::app {
namespace {

/// Keeps this file's instances of the <regex> templates apart from others.
struct Traits : std::regex_traits<char> {};
using Regex = std::basic_regex<char, Traits>;

/// 490 nested parentheses took 0.38 MiB, some 770 bytes per level, with libstdc++ 12 and -O2; so the deepest recursions
/// under the limits take about 0.8 MiB (1000 pairs) and 4 MiB (5000 states).
constexpr std::size_t kStackBytes = std::size_t{16} << 20;

/// Function and result of a thread, or what it threw.
template <class Function>
struct Job {
  const Function& function;
  std::exception_ptr failure;

  static void* run(void* self) {
    Job& job = *static_cast<Job*>(self);
    try {
      job.function();
    } catch (...) {
      job.failure = std::current_exception();
    }
    return nullptr;
  }
};

/// Calls the function on a stack of kStackBytes, however small the process's own may be, and waits until it returns.
template <class Function>
void on_large_stack(const Function& function) {
  Job<Function> job{function, nullptr};
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread{};
  const int failure = ::pthread_create(&thread, &attributes, &Job<Function>::run, &job);
  ::pthread_attr_destroy(&attributes);
  if (failure != 0) {
    throw core::EnvironmentError(fmt::format(
        "cannot start a thread for a regular expression ({}): is a limit set on processes (ulimit -u) or on "
        "memory (ulimit -v)?",
        std::strerror(failure)));
  }
  ::pthread_join(thread, nullptr);
  if (job.failure) {
    std::rethrow_exception(job.failure);
  }
}

/// "(?=" or "(?!" that is not escaped.
bool has_look_ahead(std::string_view expression) {
  for (std::size_t at = 0; at < expression.size(); ++at) {
    if (expression[at] == '\\') {
      ++at;
    } else if (expression.substr(at).starts_with("(?=") || expression.substr(at).starts_with("(?!")) {
      return true;
    }
  }
  return false;
}

/// What is wrong, in words that do not depend on the version of the library.
std::string_view mistake_words(std::regex_constants::error_type code) {
  namespace rc = std::regex_constants;
  if (code == rc::error_complexity || code == rc::error_backref) {
    return "back-references (\\1) are not supported, because their time is unbounded";
  }
  if (code == rc::error_space || code == rc::error_stack) {
    return "it has too many states; make its repetitions {n,m} smaller";
  }
  if (code == rc::error_paren || code == rc::error_badrepeat) {  // libstdc++ also reports "*a" as the former
    return "a parenthesis is unmatched, or there is nothing before *, + or ? to repeat";
  }
  if (code == rc::error_brack || code == rc::error_range) {
    return "a bracket expression [...] is invalid";
  }
  if (code == rc::error_brace || code == rc::error_badbrace) {
    return "a repetition {n,m} is invalid";
  }
  if (code == rc::error_escape) {
    return "a backslash is followed by a letter without a meaning";
  }
  return "it cannot be parsed";
}

[[noreturn]] void refuse(std::string_view option, std::string_view expression, std::string_view why) {
  constexpr std::size_t kShown = 100;
  throw core::UsageError(fmt::format("{}: \"{}\" is not a usable regular expression: {}", option,
                                     core::printable(expression, kShown), why));
}

}  // namespace

struct Pattern::Automaton {
  Regex regex;
};

Pattern::Pattern(std::string_view expression, std::string_view option) {
  if (expression.size() > kMaxBytes) {
    refuse(option, expression,
           fmt::format("it has {} bytes, but the limit is {}; split it into several --filter, or repeat --case instead",
                       expression.size(), kMaxBytes));
  }
  if (expression.find('\0') != std::string_view::npos) {
    refuse(option, expression, "it has a NUL byte");
  }
  if (has_look_ahead(expression)) {
    refuse(option, expression, "look-ahead, (?=...) or (?!...), is not supported; --exclude drops what matches");
  }
  const auto flags =
      std::regex_constants::ECMAScript | std::regex_constants::nosubs | std::regex_constants::__polynomial;
  try {
    on_large_stack([&] {
      // By itself first: the wrapper below would make "a)|(b" valid.
      const Regex alone(expression.begin(), expression.end(), flags);
      // One match of the whole text finds it anywhere; a search would start over at every letter.
      const std::string anywhere = fmt::format("[\\s\\S]*?(?:{})[\\s\\S]*", expression);
      automaton_ = std::make_unique<Automaton>(Automaton{Regex(anywhere, flags)});
    });
  } catch (const std::regex_error& mistake) {
    refuse(option, expression, mistake_words(mistake.code()));
  }
}

Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

std::vector<bool> Pattern::found_in(std::span<const std::string_view> texts) const {
  std::vector<bool> found(texts.size());
  on_large_stack([&] {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      found[i] = std::regex_match(texts[i].begin(), texts[i].end(), automaton_->regex);
    }
  });
  return found;
}

}  // namespace numcheck::app
