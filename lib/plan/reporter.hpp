// Collects mistakes with their positions, so that all of them are reported at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "plan/diagnostic.hpp"
#include "plan/node.hpp"
#include "plan/source.hpp"

namespace numcheck::plan {

/// Text that accompanies the main sentence of a diagnostic.
struct Advice {
  std::string hint;
  std::string note;
};

class Reporter {
 public:
  explicit Reporter(const Sources& sources) : sources_(&sources) {}

  /// The document that JSON pointers refer to.
  void set_root(const Node& root) { root_ = &root; }

  void error(const Location& where, std::string text, Advice advice = {});
  void error(const Node& node, std::string text, Advice advice = {});
  /// At the key, with the pointer of its value.
  void error(const Member& member, std::string text, Advice advice = {});
  void warning(const Node& node, std::string text, Advice advice = {});

  [[nodiscard]] std::size_t error_count() const noexcept { return error_count_; }
  [[nodiscard]] bool failed() const noexcept { return error_count_ != 0; }
  /// "common.json:9", for notes that refer to another place.
  [[nodiscard]] std::string line_of(const Node& node) const;
  /// An error at the node, to be given a text by those who find out what is wrong.
  [[nodiscard]] Diagnostic diagnostic_at(const Node& node) const;
  /// Cheap for many nodes, if most come in the order in which they are written.
  [[nodiscard]] Place place_of(const Node& node);
  /// True once further errors are only counted.
  [[nodiscard]] bool saturated() const noexcept { return errors_.size() >= kMaxDiagnostics; }
  [[nodiscard]] std::vector<Diagnostic> warnings() const { return in_order(warnings_); }

  /// Throws PlanError if there were errors.
  void throw_if_failed() const;

 private:
  struct Placed {
    Location where;
    Diagnostic diagnostic;
  };
  static std::vector<Diagnostic> in_order(std::vector<Placed> list);
  [[nodiscard]] Diagnostic located(const Location& where, const Node* node) const;
  void add(Severity severity, const Location& where, const Node* node, std::string text, Advice advice);

  /// How far a file has been read by place_of.
  struct Cursor {
    std::size_t offset = 0, line = 1, column = 1;
  };

  const Sources* sources_;
  const Node* root_ = nullptr;
  std::vector<Placed> errors_;
  std::vector<Placed> warnings_;
  std::unordered_set<std::string> seen_;
  std::map<std::uint32_t, Cursor> cursors_;
  std::map<std::pair<std::uint32_t, std::size_t>, Place> places_;  ///< by file and offset: "defaults" come again
  std::size_t error_count_ = 0;
};

/// `text` in double quotes, control characters replaced, cut to 60 code points.
[[nodiscard]] std::string quote(std::string_view text);

/// `did you mean "x"? ` if a candidate is near, then `lead` and the candidates (cut after 150 characters).
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string_view> candidates,
                                     std::string_view lead);

/// Reports every key of `object` that is not legal ("$comment" always is), except those in `reported`. `owner`: "a case".
void check_keys(const Node& object, std::span<const std::string_view> legal, std::string_view owner, Reporter& reporter,
                std::span<const std::string_view> reported = {});

/// Reports that `node` should have been `expected` ("a string"); `what` names it ("name").
void wrong_kind(const Node& node, std::string_view what, std::string_view expected, Reporter& reporter,
                std::string hint = {});

}  // namespace numcheck::plan
