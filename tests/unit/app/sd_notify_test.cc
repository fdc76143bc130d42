// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "app/sd_notify.h"

#include "support/temporary_directory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace baton::app {
namespace {

// A service manager's socket; the environment is as it was when this is gone.
class Manager {
 public:
  explicit Manager(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length), 0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    ::close(socket_);
    ::unsetenv("NOTIFY_SOCKET");
  }
  std::string heard() const {
    std::array<char, 256> buffer{};
    const ssize_t size = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(buffer.data(), static_cast<std::size_t>(size));
  }

 private:
  int socket_;
};

TEST(ServiceManager, IsToldByASocketInTheFileSystem) {
  const test::TemporaryDirectory directory;
  const Manager manager(directory.path("notify"));
  notify_service_manager("READY=1");
  EXPECT_EQ(manager.heard(), "READY=1");
}

TEST(ServiceManager, IsToldByASocketWithoutAFile) {
  const Manager manager("@baton-test-" + std::to_string(::getpid()));
  notify_service_manager("MAINPID=7\nREADY=1");
  EXPECT_EQ(manager.heard(), "MAINPID=7\nREADY=1");
}

TEST(ServiceManager, IsNotWaitedForWhereThereIsNone) {
  ::unsetenv("NOTIFY_SOCKET");
  notify_service_manager("READY=1");
  for (const char* name : {"", "/", "relative", "/no/such/socket"}) {
    ::setenv("NOTIFY_SOCKET", name, 1);
    notify_service_manager("READY=1");
  }
  ::setenv("NOTIFY_SOCKET", std::string(200, '/').c_str(), 1);
  notify_service_manager("READY=1");
  ::unsetenv("NOTIFY_SOCKET");
}

}  // namespace
}  // namespace baton::app
