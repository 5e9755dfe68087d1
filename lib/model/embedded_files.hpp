// Files of configs/ that the program carries with it, embedded when the build is configured.
#pragma once

#include <span>
#include <string_view>

namespace numcheck::model {

struct EmbeddedFile {
  std::string_view name;  ///< "sm_90.json"
  std::string_view text;
};

/// configs/models/*.json, ordered by name.
[[nodiscard]] std::span<const EmbeddedFile> model_files() noexcept;

/// configs/tf32_classes.json.
[[nodiscard]] std::string_view tf32_classes_text() noexcept;

}  // namespace numcheck::model
