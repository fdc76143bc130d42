// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/inheritance.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <netinet/in.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace baton::app {
namespace {

using boost::asio::ip::tcp;

constexpr std::size_t kMostHandedDown = 4096;
constexpr std::array kVariables{kTakeoverVariable, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"};

std::optional<long> number(const char* text) {
  if (text == nullptr) return std::nullopt;
  const char* end = text + std::strlen(text);
  long value = 0;
  const auto [read, error] = std::from_chars(text, end, value);
  if (error != std::errc() || read != end || value < 0) return std::nullopt;
  return value;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t colon = text.find(':');
    names.emplace_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return names;
    text.remove_prefix(colon + 1);
  }
}

// The address it listens at; nullopt: it is no listening TCP socket.
std::optional<tcp::endpoint> listens_at(int descriptor) {
  int listening = 0;
  int type = 0;
  socklen_t size = sizeof(int);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) return {};
  size = sizeof(int);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return {};
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  const bool internet = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  if (listening == 0 || type != SOCK_STREAM || !internet) return {};
  tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), &address, length);
  endpoint.resize(length);
  return endpoint;
}

}  // namespace

HandedDown read_environment(const Environment& get, pid_t own) {
  if (const char* names = get(kTakeoverVariable)) return {true, split(names)};
  // Another process of the same session may have been meant.
  if (number(get("LISTEN_PID")) != own) return {};
  const std::size_t count =
      std::min(static_cast<std::size_t>(number(get("LISTEN_FDS")).value_or(0)), kMostHandedDown);
  HandedDown given;
  if (const char* names = get("LISTEN_FDNAMES")) given.names = split(names);
  given.names.resize(count);
  return given;
}

bool fits(const InheritedSocket& socket, std::string_view key, const tcp::endpoint& asked) {
  const bool named = socket.name == kClientSocket || socket.name == kAdminSocket;
  if (named && socket.name != key) return false;
  if (socket.bound.address() != asked.address()) return false;
  return socket.bound.port() == asked.port() || (asked.port() == 0 && named);
}

std::vector<InheritedSocket> Inheritance::take(std::string_view key, const tcp::endpoint& asked) {
  const auto wanted = [&](const InheritedSocket& socket) { return fits(socket, key, asked); };
  std::vector<InheritedSocket> taken;
  std::ranges::copy_if(sockets, std::back_inserter(taken), wanted);
  std::erase_if(sockets, wanted);
  return taken;
}

Inheritance take_inheritance() {
  const HandedDown given =
      read_environment([](const char* name) { return ::getenv(name); }, ::getpid());
  // Processes that this one starts are not meant.
  for (const char* name : kVariables) ::unsetenv(name);
  Inheritance inheritance;
  int descriptor = kFirstHandedDown;
  for (const std::string& name : given.names) {
    const int next = descriptor++;
    ::fcntl(next, F_SETFD, FD_CLOEXEC);
    if (given.takeover && name == kChannelName) {
      inheritance.predecessor = next;
    } else if (const auto bound = listens_at(next)) {
      inheritance.sockets.push_back({next, name, *bound});
    } else {
      ::close(next);
      inheritance.unusable.push_back(name);
    }
  }
  return inheritance;
}

}  // namespace baton::app
