// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// The sockets a router listens on.
#include "unit/app/router_fixture.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace baton::app {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using testing::HasSubstr;
using testing::StartsWith;

struct RouterSocketsTest : RouterTest {};

TEST_F(RouterSocketsTest, ListensAtPortsOfItsChoiceAndSaysWhich) {
  serve(config_with({}));
  EXPECT_NE(port(), 0);
  EXPECT_NE(admin(), 0);
  EXPECT_NE(port(), admin());
  EXPECT_THAT(get(port(), "/health"), StartsWith("HTTP/1.1 200"));
}

TEST_F(RouterSocketsTest, DoesNotStartWhereItsAddressIsTaken) {
  asio::io_context io;
  tcp::acceptor taken(io, {asio::ip::address_v4::loopback(), 0}, false);
  config::Config config = config_with({});
  config.listen.port = taken.local_endpoint().port();
  const auto started = make(config);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message(), HasSubstr(config.listen.to_string()));
}

TEST_F(RouterSocketsTest, DoesNotStartWhereItsAdminAddressIsTaken) {
  asio::io_context io;
  tcp::acceptor taken(io, {asio::ip::address_v4::loopback(), 0}, false);
  config::Config config = config_with({});
  config.admin->port = taken.local_endpoint().port();
  const auto started = make(config);
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message(), HasSubstr(config.admin->to_string()));
}

// Sockets that were there before it, as systemd or a predecessor hands them down.
TEST_F(RouterSocketsTest, ServesOnTheSocketsItInherits) {
  asio::io_context io;
  tcp::acceptor ours(io, {asio::ip::address_v4::loopback(), 0});
  tcp::acceptor other(io, {asio::ip::address_v4::loopback(), 0});
  Router::Succession succession;
  succession.inherited.sockets = {
      {::dup(ours.native_handle()), std::string(kClientSocket), ours.local_endpoint()},
      {::dup(other.native_handle()), "unknown", other.local_endpoint()}};
  succession.inherited.unusable = {"log"};
  bool told = false;
  succession.serving = [&told] { told = true; };
  config::Config config = config_with({});
  config.threads = 3;  // they share the one socket
  serve(config, {}, std::move(succession));
  EXPECT_TRUE(told);
  EXPECT_EQ(port(), ours.local_endpoint().port());
  for (int i = 0; i < 6; ++i) {
    EXPECT_THAT(get(port(), "/health"), StartsWith("HTTP/1.1 200"));
  }
  end();
  EXPECT_THAT(logged, HasSubstr("\"event\":\"socket_unused\",\"name\":\"unknown\""));
  EXPECT_THAT(logged, HasSubstr(other.local_endpoint().address().to_string() + ":" +
                                std::to_string(other.local_endpoint().port())));
  EXPECT_THAT(logged, HasSubstr("\"name\":\"log\",\"address\":\"none\""));
}

TEST_F(RouterSocketsTest, MoreInheritedSocketsThanThreadsAreAllServed) {
  asio::io_context io;
  std::vector<tcp::acceptor> acceptors;
  const auto open = [&io](std::uint16_t port) {
    tcp::acceptor acceptor(io, tcp::v4());
    const int yes = 1;
    ::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
    acceptor.bind({asio::ip::address_v4::loopback(), port});
    acceptor.listen();
    return acceptor;
  };
  acceptors.push_back(open(0));
  const tcp::endpoint bound = acceptors[0].local_endpoint();
  for (int i = 0; i < 3; ++i) acceptors.push_back(open(bound.port()));
  Router::Succession succession;
  for (tcp::acceptor& acceptor : acceptors) {
    succession.inherited.sockets.push_back({acceptor.release(), std::string(kClientSocket), bound});
  }
  config::Config config = config_with({});
  config.threads = 2;
  serve(config, {}, std::move(succession));
  // The kernel spreads connections over all four: any that nobody accepts from would hang.
  for (int i = 0; i < 24; ++i) {
    ASSERT_THAT(get(bound.port(), "/health"), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(RouterSocketsTest, AnAddressOfAnotherFamilyIsBoundAnew) {
  asio::io_context io;
  tcp::acceptor other(io, {asio::ip::address_v4::loopback(), 0});
  Router::Succession succession;
  // For the admin listener by its name, so not for clients, whatever its address.
  succession.inherited.sockets = {
      {other.release(), std::string(kAdminSocket), {asio::ip::address_v4::loopback(), 1}}};
  config::Config config = config_with({});
  serve(config, {}, std::move(succession));
  EXPECT_NE(port(), admin());
  EXPECT_THAT(get(port(), "/health"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(get(admin(), "/health"), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace baton::app
