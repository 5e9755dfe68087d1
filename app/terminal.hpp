// Terminal output. Data goes to stdout, messages to stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace numcheck::run {
struct Progress;
}

namespace numcheck::app {

enum class ColourChoice { automatic, always, never };
enum class ProgressChoice { automatic, plain, never };

/// "auto", "always" or "never"; throws core::UsageError that names who set it.
[[nodiscard]] ColourChoice parse_colour(std::string_view text, std::string_view set_by);
/// "auto", "plain" or "never"; throws core::UsageError.
[[nodiscard]] ProgressChoice parse_progress(std::string_view text);

/// What the environment and the streams allow, as read at start.
struct TerminalFacts {
  bool stdout_is_tty = false;
  bool stderr_is_tty = false;
  bool no_color = false;        ///< NO_COLOR is set and not empty (no-color.org)
  bool force_color = false;     ///< CLICOLOR_FORCE is set and not "0"
  bool dumb = false;            ///< TERM is "dumb"
  bool github_actions = false;  ///< GITHUB_ACTIONS is "true"
  bool utf8 = true;             ///< the locale's codeset is UTF-8; otherwise only ASCII is shown
  std::size_t columns = 0;      ///< COLUMNS, or those of the terminal that stdout is; 0 if it is none
  std::size_t err_columns = 0;  ///< the same of stderr
};

[[nodiscard]] TerminalFacts read_terminal();

/// --color decides unless it is auto; then NO_COLOR, CLICOLOR_FORCE, TERM=dumb, and whether the stream is a tty.
[[nodiscard]] bool use_colour(ColourChoice choice, const TerminalFacts& facts, bool is_tty) noexcept;

/// Messages may come from several threads.
class Terminal {
 public:
  Terminal(const TerminalFacts& facts, ColourChoice colour, ProgressChoice progress);

  [[nodiscard]] bool colour_on_stdout() const noexcept { return colour_out_; }
  [[nodiscard]] const TerminalFacts& facts() const noexcept { return facts_; }
  /// Columns for the console view; 0 if nothing limits them: a pipe or a file gets identifiers as they are.
  [[nodiscard]] std::size_t width() const noexcept { return facts_.columns; }
  /// The same for the status line.
  [[nodiscard]] std::size_t status_width() const noexcept { return facts_.err_columns; }

  /// Lines for people, filtered by screen_text, to stdout; throws core::IoError if it cannot write (a full disk must
  /// not look like success).
  void out(std::string_view text) const;
  /// Bytes for programs, to stdout unchanged.
  void data(std::string_view bytes) const;
  /// Lines for people to stderr, after removing the status line.
  void err(std::string_view text);
  /// "error: ..." on one line and the notes below it, and under GitHub Actions the same as an annotation. Newlines and
  /// control characters in them are shown as escapes.
  void error(std::string_view text, const std::vector<std::string>& notes = {});
  /// Under GitHub Actions, the lines that mark a place in a file; otherwise nothing.
  void annotate(std::string_view annotation);

  /// One redrawn line on a tty (at most 10 times a second), one plain line every 30 s elsewhere, or nothing.
  void status(std::string_view text);
  void clear_status();

 private:
  using Clock = std::chrono::steady_clock;

  void write_err(std::string_view bytes);
  /// The last filter of text for people.
  [[nodiscard]] std::string shown(std::string_view text, bool colour) const;
  void remove_status();

  TerminalFacts facts_;
  bool colour_out_ = false;
  bool colour_err_ = false;
  bool redraw_ = false;
  bool plain_ = false;
  std::mutex mutex_;  ///< guards stderr and what follows
  bool line_shown_ = false;
  Clock::time_point last_;
};

/// "[ 37/84] gemm/…/bf16   2 failed   00:14 left"; the identifier is cut so that the line fits `width`, unless that is 0.
[[nodiscard]] std::string progress_line(const run::Progress& progress, double elapsed_s, std::size_t width);

}  // namespace numcheck::app
