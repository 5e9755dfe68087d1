// A page about one result and its cause.
#pragma once

#include <string>
#include <vector>

#include "op/op.hpp"
#include "verdict/record.hpp"

namespace numcheck::report::views {

/// Strings need not be printable.
struct DiagnosisPage {
  struct Map {
    std::string title;
    verdict::OutputPicture picture;
    op::Port port;  ///< whose errors are drawn
  };

  std::string title;
  std::string text;  ///< as on the console
  std::vector<Map> maps;
};

/// One file, without scripts and without anything from elsewhere.
[[nodiscard]] std::string render_diagnosis(const DiagnosisPage& page);

}  // namespace numcheck::report::views
