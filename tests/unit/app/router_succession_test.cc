// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// A router that hands over to a shell that says what a next router would say. The whole of it, with
// two routers, is tested by the process tests.
#include "support/temporary_directory.h"
#include "unit/app/router_fixture.h"

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <utility>

namespace baton::app {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct RouterSuccessionTest : RouterTest {
  // Two sockets of clients, one of the admin listener, and the channel behind them: 6.
  void serve_with_successor(const std::string& script) {
    Router::Succession succession;
    succession.command = {"/bin/sh", "-c", script};
    serve(config_with({}), {}, std::move(succession));
  }
  // Without a worker this process could not serve either, so one that has looked is good enough.
  static constexpr const char* kSpeaks = "echo pid $$ >&6; echo checked >&6; ";
  std::string file(const std::string& name) const {
    std::ifstream in(directory.path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  test::TemporaryDirectory directory;
};

TEST_F(RouterSuccessionTest, EndsByItselfOnceItHasHandedOver) {
  serve_with_successor("echo \"$BATON_TAKEOVER\" >" + directory.path("names") + "; " + kSpeaks +
                       "read line <&6; echo \"$line\" >" + directory.path("heard"));
  EXPECT_THAT(get(port(), "/health"), StartsWith("HTTP/1.1 200"));
  ::kill(::getpid(), SIGUSR2);
  control.join();
  EXPECT_EQ(file("names"), "listen:listen:admin:predecessor\n");
  EXPECT_EQ(file("heard"), "go\n");
  EXPECT_THAT(logged, HasSubstr("\"event\":\"restart_begun\""));
  EXPECT_THAT(logged, HasSubstr("\"event\":\"handed_over\""));
  EXPECT_THAT(logged, HasSubstr("\"event\":\"stopped\""));
}

TEST_F(RouterSuccessionTest, GoesOnServingAfterASuccessorThatFailed) {
  serve_with_successor("exit 3");
  ::kill(::getpid(), SIGUSR2);
  EXPECT_THAT(get_until(admin(), "/metrics", "baton_restart_failures_total{reason=\"ended\"} 1"),
              HasSubstr("baton_restart_failures_total{reason=\"ended\"} 1"));
  EXPECT_THAT(get(port(), "/health"), StartsWith("HTTP/1.1 200"));
  end();
  EXPECT_THAT(logged, HasSubstr("\"ended_with\":\"exit code 3\""));
  EXPECT_THAT(logged, Not(HasSubstr("\"event\":\"handed_over\"")));
}

TEST_F(RouterSuccessionTest, AnEndMeanwhileEndsTheSuccessorToo) {
  serve_with_successor("echo pid $$ >&6; echo $$ >" + directory.path("pid") + "; read line <&6");
  ::kill(::getpid(), SIGUSR2);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!file("pid").ends_with('\n') && std::chrono::steady_clock::now() < deadline) {
    get(admin(), "/health");
  }
  ASSERT_TRUE(file("pid").ends_with('\n'));
  end();
  EXPECT_EQ(::kill(std::stoi(file("pid")), 0), -1);
  EXPECT_THAT(logged, HasSubstr("\"kind\":\"stopped\""));
  EXPECT_THAT(logged, Not(HasSubstr("\"event\":\"handed_over\"")));
}

TEST_F(RouterSuccessionTest, WithoutACommandThereIsNoMetricOfRestarts) {
  serve(config_with({}));
  EXPECT_THAT(get(admin(), "/metrics"), Not(HasSubstr("baton_restart_failures_total")));
}

}  // namespace
}  // namespace baton::app
