// Forward declaration of the only class of CLI11 that headers name; its own header is slow to compile.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
class Option;
}  // namespace CLI
