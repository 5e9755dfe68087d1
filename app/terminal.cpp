#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "annotations.hpp"
#include "character_set.hpp"
#include "core/error.hpp"
#include "core/printable.hpp"
#include "report/views/text_table.hpp"
#include "run/pipeline.hpp"
#include "screen_text.hpp"

namespace numcheck::app {
namespace {

constexpr std::size_t kFewestColumns = 20;  // fewer leave no room for anything
constexpr std::size_t kMaxMessage = 2000;   // characters; a quoted argument may have 131071
constexpr auto kRedrawInterval = std::chrono::milliseconds(100);
constexpr auto kPlainInterval = std::chrono::seconds(30);

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

/// COLUMNS, as ls and many others take it, or the width of the terminal behind the stream.
std::size_t columns_of(int stream) {
  const std::string_view wanted = environment("COLUMNS");
  std::size_t columns = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), columns);
  if (error == std::errc() && end == wanted.data() + wanted.size() && columns > 0) {
    return std::max(columns, kFewestColumns);
  }
  winsize size{};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? std::max<std::size_t>(size.ws_col, kFewestColumns)
                                                                    : 0;
}

}  // namespace

ColourChoice parse_colour(std::string_view text, std::string_view set_by) {
  if (text == "auto") {
    return ColourChoice::automatic;
  }
  if (text == "always") {
    return ColourChoice::always;
  }
  if (text == "never") {
    return ColourChoice::never;
  }
  throw core::UsageError(fmt::format("{}: \"{}\" is not one of auto, always, never", set_by, text));
}

ProgressChoice parse_progress(std::string_view text) {
  if (text == "auto") {
    return ProgressChoice::automatic;
  }
  if (text == "plain") {
    return ProgressChoice::plain;
  }
  if (text == "never") {
    return ProgressChoice::never;
  }
  throw core::UsageError(fmt::format("--progress: \"{}\" is not one of auto, plain, never", text));
}

TerminalFacts read_terminal() {
  return {.stdout_is_tty = ::isatty(STDOUT_FILENO) == 1,
          .stderr_is_tty = ::isatty(STDERR_FILENO) == 1,
          .no_color = !environment("NO_COLOR").empty(),
          .force_color = !environment("CLICOLOR_FORCE").empty() && environment("CLICOLOR_FORCE") != "0",
          .dumb = environment("TERM") == "dumb",
          .github_actions = environment("GITHUB_ACTIONS") == "true",
          .utf8 = is_utf8_locale(environment("LC_ALL"), environment("LC_CTYPE"), environment("LANG")),
          .columns = columns_of(STDOUT_FILENO),
          .err_columns = columns_of(STDERR_FILENO)};
}

bool use_colour(ColourChoice choice, const TerminalFacts& facts, bool is_tty) noexcept {
  if (choice != ColourChoice::automatic) {
    return choice == ColourChoice::always;
  }
  if (facts.no_color) {
    return false;
  }
  return facts.force_color || (is_tty && !facts.dumb);
}

Terminal::Terminal(const TerminalFacts& facts, ColourChoice colour, ProgressChoice progress)
    : facts_(facts),
      colour_out_(use_colour(colour, facts, facts.stdout_is_tty)),
      colour_err_(use_colour(colour, facts, facts.stderr_is_tty)),
      redraw_(progress == ProgressChoice::automatic && facts.stderr_is_tty && !facts.dumb),
      plain_(progress == ProgressChoice::plain || (progress == ProgressChoice::automatic && !redraw_)),
      last_(Clock::now()) {}

std::string Terminal::shown(std::string_view text, bool colour) const {
  std::string filtered = screen_text(text, colour);
  return facts_.utf8 ? filtered : in_ascii(filtered);
}

void Terminal::out(std::string_view text) const {
  data(shown(text, colour_out_));
}

void Terminal::data(std::string_view bytes) const {
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
  if (!written || std::fflush(stdout) != 0) {
    const int error = errno;  // EBADF: the caller closed it (open_standard_streams)
    throw core::IoError(
        fmt::format("cannot write to standard output: {}",
                    error == EBADF ? std::string("it is closed") : std::generic_category().message(error)));
  }
}

void Terminal::write_err(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  remove_status();
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

void Terminal::err(std::string_view text) {
  write_err(shown(text, colour_err_));
}

void Terminal::error(std::string_view text, const std::vector<std::string>& notes) {
  // Keeps the beginning, which names the option, and the end, which says what would be valid.
  const std::string message = report::views::cut_middle(core::printable(text), kMaxMessage);
  std::string lines = report::views::paint("error:", report::views::Colour::red, colour_err_) + " " + message + "\n";
  for (const std::string& note : notes) {
    lines += "  " + core::printable(note) + "\n";
  }
  err(lines);
  annotate(annotation(message, notes));
}

void Terminal::annotate(std::string_view annotation) {
  if (facts_.github_actions) {
    write_err(annotation);
  }
}

void Terminal::status(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (redraw_ && (!line_shown_ || now - last_ >= kRedrawInterval)) {
    const std::string line = "\r\x1b[K" + shown(text, false);
    std::fwrite(line.data(), 1, line.size(), stderr);
    line_shown_ = true;
    last_ = now;
  } else if (plain_ && now - last_ >= kPlainInterval) {
    const std::string line = shown(text, false) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
    last_ = now;
  }
}

void Terminal::clear_status() {
  const std::lock_guard lock(mutex_);
  remove_status();
}

void Terminal::remove_status() {
  if (line_shown_) {
    std::fputs("\r\x1b[K", stderr);
    line_shown_ = false;
  }
}

std::string progress_line(const run::Progress& progress, double elapsed_s, std::size_t width) {
  const int digits = static_cast<int>(std::to_string(progress.total).size());
  const std::string head = fmt::format("[{:>{}}/{}] ", progress.done, digits, progress.total);
  std::string tail = fmt::format("   {} failed", progress.failed);
  constexpr double kLeastShare = 0.01;  // before, what it took to start counts more than the work
  if (progress.share >= kLeastShare && progress.done < progress.total) {
    const double left = elapsed_s / progress.share * (1 - progress.share);
    const auto whole = static_cast<long long>(std::ceil(std::clamp(left, 0.0, 359999.0)));
    tail += fmt::format("   {:02}:{:02} left", whole / 60, whole % 60);
  }
  const std::size_t used = head.size() + tail.size();
  const std::size_t room = width > used + 8 ? width - used - 1 : 8;
  const std::string id = core::printable(progress.last_id);
  return head + (width == 0 ? id : report::views::cut_middle(id, room)) + tail;
}

}  // namespace numcheck::app
