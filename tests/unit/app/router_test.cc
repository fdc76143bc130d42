// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// A whole router in this process, between a client of a few lines and engines that the test plays. What
// needs a process of its own is tested by the process tests.
#include "app/router.h"

#include "support/certificate.h"
#include "support/fake_engine.h"
#include "support/temporary_directory.h"
#include "unit/app/router_fixture.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <expected>
#include <string>
#include <unistd.h>
#include <vector>

namespace baton::app {
namespace {

using test::Certificate;
using test::FakeEngine;
using test::FakePeer;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(RouterTest, ServesClientsThroughItsWorker) {
  FakeEngine engine(serving("hello"));
  serve(config_with({engine.endpoint()}));
  wait_until_ready();
  const std::string answer = post(port());
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("\"text\":\"hello\""));
  EXPECT_THAT(get(port(), "/v1/models"), HasSubstr("\"id\":\"demo\""));
  EXPECT_THAT(get(admin(), "/workers"), HasSubstr(engine.endpoint().to_string()));
  EXPECT_THAT(get(admin(), "/metrics"), HasSubstr("baton_requests_total"));
}

TEST_F(RouterTest, WithoutAWorkerItListensAndRefuses) {
  serve(config_with({test::closed_endpoint()}));
  EXPECT_THAT(get(admin(), "/health"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(get_until(admin(), "/ready", "HTTP/1.1 503"), StartsWith("HTTP/1.1 503"));
}

TEST_F(RouterTest, DoesNotStartWithoutItsCertificateOrTokenizer) {
  const test::TemporaryDirectory directory;
  config::Config config = config_with({});
  config.tls = config::Tls{directory.path("none.pem"), directory.path("none.key")};
  EXPECT_THAT(make(config).error().message(), StartsWith("tls.certificate: cannot read"));
  router.reset();
  config.tls.reset();
  config.models[0].tokens = {model::Tokenize::Local, directory.path("no-model"), "", {}};
  EXPECT_THAT(make(config).error().message(), HasSubstr(directory.path("no-model")));
}

TEST_F(RouterTest, SpeaksTlsAloneWhereItHasACertificate) {
  const test::TemporaryDirectory directory;
  const Certificate own("router");
  config::Config config = config_with({});
  config.tls =
      config::Tls{directory.write("c.pem", own.certificate), directory.write("k.pem", own.key)};
  serve(config);
  EXPECT_EQ(get(port(), "/health").find("HTTP/1.1 200"), std::string::npos);
  EXPECT_THAT(get(admin(), "/health"), StartsWith("HTTP/1.1 200"));  // this one is plain
}

TEST_F(RouterTest, ASignalLetsStreamsFinish) {
  FakeEngine engine([](FakePeer& peer) {
    while (const auto request = peer.read_request()) {
      if (!request->head.starts_with("POST /v1/completions")) {
        peer.write(test::response(200, "{}"));
        continue;
      }
      peer.write(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
          "data: {\"choices\":[{\"index\":0,\"text\":\"one\",\"finish_reason\":null}]}\n\n");
      peer.wait_for_proceed();
      peer.write(
          "data: {\"choices\":[{\"index\":0,\"text\":\"two\",\"finish_reason\":\"stop\"}]}\n\n"
          "data: [DONE]\n\n");
      return;
    }
  });
  serve(config_with({engine.endpoint()}));
  wait_until_ready();
  Connection client(port());
  client.send(post_text(R"({"model":"demo","prompt":"hi","max_tokens":2,"stream":true})"));
  EXPECT_THAT(client.read_until("one"), HasSubstr("one"));
  ::kill(::getpid(), SIGTERM);
  EXPECT_THAT(get_until(admin(), "/ready", "HTTP/1.1 503"), StartsWith("HTTP/1.1 503"));
  engine.proceed();
  EXPECT_THAT(client.read_all(), HasSubstr("[DONE]"));
  control.join();
  EXPECT_THAT(logged, HasSubstr("\"event\":\"shutting_down\""));
  EXPECT_THAT(logged, HasSubstr("\"event\":\"stopped\""));
  EXPECT_THAT(logged, testing::Not(HasSubstr("shutdown_grace_over")));
}

TEST_F(RouterTest, ASecondSignalCutsWhatStillRuns) {
  FakeEngine engine([](FakePeer& peer) {
    while (const auto request = peer.read_request()) {
      if (!request->head.starts_with("POST /v1/completions")) {
        peer.write(test::response(200, "{}"));
        continue;
      }
      peer.write(
          "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
          "data: {\"choices\":[{\"index\":0,\"text\":\"one\",\"finish_reason\":null}]}\n\n");
      peer.wait_for_drop();
      return;
    }
  });
  config::Config config = config_with({engine.endpoint()});
  config.shutdown_grace = std::chrono::hours(1);
  serve(config);
  wait_until_ready();
  Connection client(port());
  client.send(post_text(R"({"model":"demo","prompt":"hi","max_tokens":2,"stream":true})"));
  EXPECT_THAT(client.read_until("one"), HasSubstr("one"));
  ::kill(::getpid(), SIGTERM);
  EXPECT_THAT(get_until(admin(), "/ready", "HTTP/1.1 503"), StartsWith("HTTP/1.1 503"));
  ::kill(::getpid(), SIGTERM);
  const std::string all = client.read_all();
  EXPECT_EQ(all.find("[DONE]"), all.npos);
  control.join();
  EXPECT_THAT(logged, HasSubstr("\"event\":\"shutdown_grace_over\""));
  EXPECT_TRUE(engine.wait_for_drops(1));
}

TEST_F(RouterTest, AHangupReadsTheConfigurationAgain) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.write("baton.yaml", "");
  const config::Config before = config_with({});
  config::Config after = before;
  after.models.emplace_back().name = "another";
  std::atomic<bool> changed{false};
  std::atomic<bool> broken{false};
  using Loaded = std::expected<config::Config, std::vector<config::Problem>>;
  serve(before, {file, [&]() -> Loaded {
                   if (broken) {
                     return std::unexpected(
                         std::vector{config::Problem{"baton.yaml", 3, "models", "is odd"}});
                   }
                   return changed ? after : before;
                 }});
  EXPECT_EQ(get(port(), "/v1/models").find("another"), std::string::npos);
  changed = true;
  ::kill(::getpid(), SIGHUP);
  EXPECT_THAT(get_until(port(), "/v1/models", "another"), HasSubstr("\"id\":\"another\""));
  // One that cannot be used changes nothing, and is said.
  broken = true;
  ::kill(::getpid(), SIGHUP);
  EXPECT_THAT(get_until(admin(), "/ready", "is odd"), HasSubstr("baton.yaml:3: models: is odd"));
  EXPECT_THAT(get(port(), "/v1/models"), HasSubstr("\"id\":\"another\""));
}

TEST_F(RouterTest, SaysWhatItsLimitsAreTooSmallFor) {
  config::Config config = config_with({});
  config.limits.memory = 1024 * 1024;
  config.limits.body_bytes = std::size_t{64} << 20U;
  config.limits.connections = 10'000'000;
  serve(config);
  end();
  EXPECT_THAT(logged, HasSubstr("\"event\":\"memory_small\",\"limit\":1048576"));
  EXPECT_THAT(logged, HasSubstr("\"event\":\"descriptors_few\""));
  EXPECT_THAT(logged, HasSubstr("\"connections\":10000000"));
}

}  // namespace
}  // namespace baton::app
