// A JSON document that remembers where everything is: what the decoder reads instead of nlohmann::json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace numcheck::plan {

/// A range of one source file, in bytes.
struct Location {
  static constexpr std::uint32_t kNoFile = UINT32_MAX;
  std::uint32_t file = kNoFile;  ///< index in Sources
  std::size_t begin = 0;
  std::size_t length = 1;
};

struct Member;

/// One JSON value. Numbers keep their text, so that 1e3 and integers beyond 64 bits can be told apart from integers.
struct Node {
  enum class Kind : std::uint8_t { null, boolean, number, text, array, object };

  Kind kind = Kind::null;
  bool truth = false;           ///< boolean
  std::string text;             ///< text: the decoded string; number: the token as written
  std::vector<Node> items;      ///< array
  std::vector<Member> members;  ///< object, in file order; keys are unique
  Location where;

  [[nodiscard]] bool is(Kind k) const noexcept { return kind == k; }
  /// The member with that key, or null (also if this is not an object).
  [[nodiscard]] const Node* find(std::string_view key) const noexcept;
};

struct Member {
  std::string key;
  Location key_where;
  Node value;
};

/// "a string", "an object", ... for messages.
[[nodiscard]] std::string_view kind_name(Node::Kind kind) noexcept;

/// JSON pointer (RFC 6901) of `target` within `root`; "" if it is not found.
[[nodiscard]] std::string pointer_of(const Node& root, const Node& target);

/// The same text for the same meaning: sorted keys, no white space, no "$comment", numbers as written. For digests.
[[nodiscard]] std::string canonical_text(const Node& node);

/// Values in a tree, the node itself included.
[[nodiscard]] std::size_t count_values(const Node& node) noexcept;

/// The same tree without positions; throws PlanError beyond kMaxDepth.
[[nodiscard]] Node node_from_json(const nlohmann::json& json);

/// Deepest nesting of arrays and objects that a document may have.
inline constexpr std::size_t kMaxDepth = 64;

}  // namespace numcheck::plan
