// Pages of `te-numcheck explain` about the program itself. Their prose is in configs/pages; names, statuses, exit codes, gates
// and members come from the tables of the code.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace numcheck::app {

struct PageInfo {
  std::string_view name;
  std::string_view summary;
};

[[nodiscard]] std::span<const PageInfo> pages() noexcept;

/// The page with that name, or null.
[[nodiscard]] const PageInfo* find_page(std::string_view name) noexcept;

[[nodiscard]] std::string explain_page(const PageInfo& page, std::size_t width, bool colour);

}  // namespace numcheck::app
