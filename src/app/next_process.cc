// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/next_process.h"

#include "app/inheritance.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <string_view>
#include <sys/auxv.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace baton::app {
namespace {

// Copies of the descriptors that lie above all places where they are to be put.
class Copies {
 public:
  Copies() = default;
  ~Copies() {
    for (const int copy : descriptors_) ::close(copy);
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  bool add(int descriptor, int lowest) {
    const int copy = ::fcntl(descriptor, F_DUPFD_CLOEXEC, lowest);
    if (copy >= 0) descriptors_.push_back(copy);
    return copy >= 0;
  }
  const std::vector<int>& descriptors() const { return descriptors_; }

 private:
  std::vector<int> descriptors_;
};

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  // 0 or an error number.
  int put(int descriptor, int place) {
    return posix_spawn_file_actions_adddup2(&actions_, descriptor, place);
  }
  int close_from(int lowest) { return posix_spawn_file_actions_addclosefrom_np(&actions_, lowest); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::vector<std::string> environment_with(std::span<const Handed> handed) {
  std::string names;
  for (const Handed& one : handed) names += (names.empty() ? "" : ":") + one.name;
  std::vector<std::string> environment{fmt::format("{}={}", kTakeoverVariable, names)};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

Error cannot_start(const std::string& program, int code) {
  return {Errc::Internal,
          fmt::format("cannot start {}: {}", program, std::generic_category().message(code))};
}

}  // namespace

std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> command;
  for (std::size_t at = 0; at < text.size(); at = text.find('\0', at) + 1)
    command.emplace_back(text.c_str() + at);
  const auto* program = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
  if (command.empty() || program == nullptr) return {};
  std::error_code ignored;
  command.front() = std::filesystem::absolute(program, ignored).string();
  return command;
}

Result<pid_t> start_process(const std::vector<std::string>& command,
                            std::span<const Handed> handed) {
  const int behind = kFirstHandedDown + static_cast<int>(handed.size());
  Copies copies;
  for (const Handed& one : handed) {
    if (!copies.add(one.descriptor, behind)) return fail(cannot_start(command.front(), errno));
  }
  FileActions actions;
  int place = kFirstHandedDown;
  int error = 0;
  for (const int copy : copies.descriptors())
    if (error == 0) error = actions.put(copy, place++);
  // Asio's sockets are inherited, and a connection ends only when all processes that have it close
  // it.
  if (error == 0) error = actions.close_from(behind);

  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = environment_with(handed);
  pid_t child = 0;
  if (error == 0) {
    error = posix_spawn(&child, command.front().c_str(), actions.get(), nullptr,
                        pointers(arguments).data(), pointers(environment).data());
  }
  if (error != 0) return fail(cannot_start(command.front(), error));
  return child;
}

void become_orphan() {
  if (::fork() > 0) ::_exit(0);
}

}  // namespace baton::app
