#include "run/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"

namespace numcheck::run {
namespace {

using nlohmann::json;
using Facts = JournalFacts;

constexpr auto kSyncInterval = std::chrono::seconds(5);
// A run of 100 000 cases writes 500 MiB.
constexpr std::uint64_t kMaxBytes = std::uint64_t{4} << 30;

std::string reason() {
  return std::generic_category().message(errno);
}

Facts facts_of(const JournalHeader& header) {
  Facts facts{{"plan digest", header.plan_digest}, {"tool version", header.tool_version},
              {"device", header.device.name},      {"device architecture", fmt::format("sm_{}", header.device.sm)},
              {"device uuid", header.device.uuid}, {"device simulated", header.device.simulated ? "yes" : "no"},
              {"driver", header.device.driver},    {"shard", header.shard}};
  for (const auto& [name, version] : header.libraries) {
    facts["library " + name] = version;
  }
  for (const machine::VariableState& variable : header.environment) {
    facts["environment variable " + variable.name] = variable.value ? "=" + *variable.value : "unset";
  }
  for (const auto& [name, value] : header.settings) {
    facts["option " + name] = value;
  }
  return facts;
}

/// One message per fact that differs.
std::vector<std::string> differences(const Facts& recorded, const Facts& current) {
  Facts all = recorded;
  all.insert(current.begin(), current.end());
  std::vector<std::string> result;
  for (const auto& [name, ignored] : all) {
    const auto old_value = recorded.find(name);
    const auto new_value = current.find(name);
    const std::string old_text = old_value == recorded.end() ? "not recorded" : '"' + old_value->second + '"';
    const std::string new_text = new_value == current.end() ? "unknown" : '"' + new_value->second + '"';
    if (old_text != new_text) {
      result.push_back(fmt::format("{}: was {}, now {}", name, old_text, new_text));
    }
  }
  return result;
}

std::string path_in(const std::string& folder) {
  return folder + "/results.jsonl";
}

}  // namespace

Journal::Journal(std::string path, core::FileDescriptor file, std::uint64_t size, std::uint64_t cases)
    : path_(std::move(path)),
      file_(std::move(file)),
      size_(size),
      cases_(cases),
      synced_(std::chrono::steady_clock::now()) {}

Journal::~Journal() {
  if (file_.valid()) {
    ::fdatasync(file_.get());
  }
}

void Journal::lock() {
  if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw core::UsageError(fmt::format("{} is in use: another te-numcheck is writing to it", path_));
  }
}

Journal Journal::create(const std::string& folder, const JournalHeader& header) {
  const std::string path = path_in(folder);
  core::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!file.valid() && errno == EEXIST) {
    throw core::UsageError(
        fmt::format("{} already exists: continue that run with --resume {}, or choose another folder", path, folder));
  }
  if (!file.valid()) {
    throw core::IoError(fmt::format("cannot create {}: {}", path, reason()));
  }
  Journal journal(path, std::move(file), 0, 0);
  journal.lock();
  JournalHead head = journal_head(facts_of(header));
  try {
    journal.write_line(head.line);
  } catch (const core::IoError&) {
    ::unlink(path.c_str());  // nothing in it could be resumed
    throw;
  }
  journal.head_checksum_ = std::move(head.checksum);
  ::fdatasync(journal.file_.get());
  return journal;
}

ResumedJournal Journal::open_for_resume(const std::string& folder, const JournalHeader& header) {
  const std::string path = path_in(folder);
  // O_NONBLOCK, because opening a FIFO would wait for its other end.
  core::FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR)) {
    throw core::UsageError(fmt::format(
        "cannot resume: {} does not exist; pass the folder of an earlier run that has finished a case", path));
  }
  if (!file.valid()) {
    throw core::IoError(fmt::format("cannot open {}: {}", path, reason()));
  }
  Journal journal(path, std::move(file), 0, 0);
  journal.lock();
  const core::FileText content = core::read_regular_file(path, kMaxBytes);
  if (!content.problem.empty()) {
    throw core::IoError(fmt::format("cannot read {}: {}", path, content.problem));
  }
  JournalText contents = parse_journal(content.text, path);
  const std::vector<std::string> different = differences(contents.facts, facts_of(header));
  if (!different.empty()) {
    throw core::UsageError(fmt::format("cannot resume {}: its results were obtained under different conditions; "
                                       "restore them or start a new run",
                                       folder),
                           different);
  }
  if (::ftruncate(journal.file_.get(), static_cast<off_t>(contents.complete_bytes)) != 0) {
    throw core::IoError(fmt::format("cannot remove the incomplete last line of {}: {}", path, reason()));
  }
  journal.head_checksum_ = std::move(contents.checksum);
  journal.size_ = contents.complete_bytes;
  journal.cases_ = contents.finished.size();
  return {std::move(journal), std::move(contents.finished), std::move(contents.unfinished), std::move(contents.notes)};
}

void Journal::append(const core::Digest& digest, const std::string& id, const json& record) {
  write_line(journal_line(head_checksum_, digest, id, record));
  ++cases_;
  const auto now = std::chrono::steady_clock::now();
  if (now - synced_ >= kSyncInterval) {
    ::fdatasync(file_.get());
    synced_ = now;
  }
}

void Journal::write_line(const std::string& line) {
  const std::string text = line + '\n';
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t step = ::write(file_.get(), text.data() + written, text.size() - written);
    if (step < 0 && errno == EINTR) {
      continue;
    }
    if (step < 0) {
      const std::string why = reason();
      const bool clean = ::ftruncate(file_.get(), static_cast<off_t>(size_)) == 0;
      if (size_ == 0) {
        throw core::IoError(fmt::format("cannot write {}: {}", path_, why));
      }
      throw core::IoError(fmt::format("cannot write {}: {}; finished cases ({}) are saved{}; continue with --resume",
                                      path_, why, cases_, clean ? "" : " (the last line is incomplete)"));
    }
    written += static_cast<std::size_t>(step);
  }
  size_ += text.size();
}

}  // namespace numcheck::run
