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

TEST(ServiceManager, HearsEachStateByItself) {
  const test::TemporaryDirectory directory;
  const Manager manager(directory.path("notify"));
  notify_service_manager("READY=1");
  notify_service_manager("RELOADING=1\nMONOTONIC_USEC=7");
  notify_service_manager("");
  notify_service_manager("STOPPING=1");
  EXPECT_EQ(manager.heard(), "READY=1");
  EXPECT_EQ(manager.heard(), "RELOADING=1\nMONOTONIC_USEC=7");
  EXPECT_EQ(manager.heard(), "");
  EXPECT_EQ(manager.heard(), "STOPPING=1");
}

TEST(ServiceManager, MayHaveALongPath) {
  // As long as an address can be, with the zero behind it.
  const test::TemporaryDirectory directory;
  std::string path = directory.path("n");
  path.resize(sizeof(sockaddr_un::sun_path) - 1, 'n');
  const Manager manager(path);
  notify_service_manager("READY=1");
  EXPECT_EQ(manager.heard(), "READY=1");
}

TEST(ServiceManager, ThatDoesNotReadIsNotWaitedFor) {
  const test::TemporaryDirectory directory;
  const Manager manager(directory.path("notify"));
  for (int i = 0; i < 5000; ++i) notify_service_manager("WATCHDOG=1");  // more than a socket holds
  EXPECT_EQ(manager.heard(), "WATCHDOG=1");
}

TEST(ServiceManager, ThatIsGoneIsNoMistake) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path("notify");
  {
    const Manager manager(path);
  }
  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);  // a socket nobody has open
  notify_service_manager("READY=1");
  directory.write("file", "");
  ::setenv("NOTIFY_SOCKET", directory.path("file").c_str(), 1);  // no socket at all
  notify_service_manager("READY=1");
  ::unsetenv("NOTIFY_SOCKET");
}

TEST(ServiceManager, LeavesNoDescriptorOpen) {
  const test::TemporaryDirectory directory;
  const Manager manager(directory.path("notify"));
  const int before = ::dup(STDERR_FILENO);
  ::close(before);
  notify_service_manager("READY=1");
  ::setenv("NOTIFY_SOCKET", directory.path("nobody").c_str(), 1);
  notify_service_manager("READY=1");
  const int after = ::dup(STDERR_FILENO);
  ::close(after);
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace baton::app
