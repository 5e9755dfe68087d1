#include "result_stream.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "report/result_lines.hpp"
#include "screen_text.hpp"

namespace numcheck::app {

void ResultStream::begin(const report::RunFacts& facts) {
  if (path_.empty() || begun_) {
    return;
  }
  begun_ = true;
  before_ = std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away must not end the run; write() says so as well
  open();
  write(report::header_line(facts));
}

void ResultStream::add(const nlohmann::json& record) {
  if (path_.empty()) {
    return;
  }
  written_.insert(record.at("digest").get<std::string>());
  write(report::case_line(record));
}

void ResultStream::finish(const report::RunFacts& facts, const nlohmann::json& report) {
  begin(facts);
  for (const nlohmann::json& record : report.at("cases")) {
    if (!path_.empty() && !written_.contains(record.at("digest").get_ref<const std::string&>())) {
      add(record);
    }
  }
  if (!path_.empty()) {
    write(report::summary_line(report));
  }
  if (begun_) {
    std::signal(SIGPIPE, before_);
  }
  if (file_.valid() && ::fsync(file_.get()) != 0 && errno != EINVAL && errno != EROFS) {
    fail(errno);  // EINVAL: a pipe or a device
  }
  if (!failure_.empty()) {
    throw core::IoError(failure_);
  }
}

void ResultStream::open() {
  if (on_stdout()) {
    descriptor_ = STDOUT_FILENO;
    return;
  }
  std::error_code ignored;
  const auto there = std::filesystem::symlink_status(path_, ignored);
  if (std::filesystem::is_regular_file(there) || std::filesystem::is_symlink(there)) {
    const auto target = std::filesystem::status(path_, ignored);
    if (!std::filesystem::exists(target) || std::filesystem::is_regular_file(target)) {
      std::filesystem::remove(path_, ignored);  // as for other files: a link is replaced, not followed
    }
  }
  file_ = core::FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
  descriptor_ = file_.get();
  if (!file_.valid()) {
    fail(errno);
  }
}

void ResultStream::write(const nlohmann::json& line) {
  if (stopped_) {
    return;
  }
  const std::string text = stdout_json(line, -1);
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t step = ::write(descriptor_, rest.data(), rest.size());
    if (step < 0 && errno == EINTR) {
      continue;
    }
    if (step < 0) {
      fail(errno);
      return;
    }
    rest.remove_prefix(static_cast<std::size_t>(step));
  }
}

void ResultStream::fail(int error) {
  stopped_ = true;
  if (error != EPIPE) {
    failure_ = fmt::format("cannot write {}: {}", on_stdout() ? "to standard output" : path_,
                           error == EBADF ? std::string("it is closed") : std::generic_category().message(error));
  }
}

}  // namespace numcheck::app
