// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/forwarding.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace baton::pipeline {
namespace {

using Fields = std::initializer_list<std::pair<const char*, const char*>>;

wire::Headers headers(Fields fields) {
  wire::Headers made;
  for (const auto& [name, value] : fields) made.add(name, value);
  return made;
}

std::string text(const wire::Headers& given) {
  std::string lines;
  for (std::size_t i = 0; i < given.size(); ++i) {
    lines += std::string(given[i].name) + ": " + std::string(given[i].value) + "\n";
  }
  return lines;
}

TEST(HeadersForWorkers, AreTheClientsWithoutWhatItCallsTheBody) {
  const auto client = headers({{"Content-Type", "application/x-www-form-urlencoded"},
                               {"traceparent", "00-1-2-01"},
                               {"X-Custom", "a"},
                               {"X-Custom", "b"},
                               {"Accept", "*/*"}});
  EXPECT_EQ(text(headers_for_worker(client, ForwardAuthorization::No)),
            "traceparent: 00-1-2-01\nX-Custom: a\nX-Custom: b\nAccept: */*\n")
      << "the body was read as JSON, and every leg says so";
}

TEST(HeadersForWorkers, LeaveOutWhatTheOperatorStrips) {
  const auto client = headers(
      {{"X-SGLExt-Ids-Framed", "1"}, {"X-SMG-Routing-Key", "k"}, {"X-SMG-Routing-Key-Too", "k"}});
  const std::vector<std::string> stripped{"x-sglext-*", "x-smg-routing-key"};
  EXPECT_EQ(text(headers_for_worker(client, ForwardAuthorization::No, stripped)),
            "X-SMG-Routing-Key-Too: k\n");
}

// Gateways in front of Baton set it; where clients are not to, the operator says so.
TEST(HeadersForWorkers, KeepAPriorityUnlessTheOperatorStripsIt) {
  const auto client = headers({{"X-Vllm-Priority", "-5"}});
  EXPECT_EQ(text(headers_for_worker(client, ForwardAuthorization::No)), "X-Vllm-Priority: -5\n");
  const std::vector<std::string> stripped{"x-vllm-priority"};
  EXPECT_EQ(text(headers_for_worker(client, ForwardAuthorization::No, stripped)), "");
}

TEST(HeadersForWorkers, LeaveOutWhatIsNotForWorkers) {
  for (const char* name : {"Connection",
                           "Keep-Alive",
                           "Proxy-Authenticate",
                           "Proxy-Authorization",
                           "Proxy-Connection",
                           "TE",
                           "Trailer",
                           "Transfer-Encoding",
                           "Upgrade",
                           "Host",
                           "Content-Length",
                           "Expect",
                           "Accept-Encoding",
                           "Content-Encoding",
                           "X-Request-Id",
                           "X-Override-Rid",
                           "x-override-bootstrap-host",
                           "X-Override-Routed-Dp-Rank",
                           "X-TRTLLM-Disagg-Auth",
                           "x-request-id",
                           "X-Data-Parallel-Rank",
                           "X-Baton-Anything",
                           "x-dynamo-worker",
                           "X-BATON-",
                           "HOST"}) {
    EXPECT_EQ(text(headers_for_worker(headers({{name, "v"}}), ForwardAuthorization::Yes)), "")
        << name;
  }
}

TEST(HeadersForWorkers, LeaveOutEachOfManyFieldsThatTheClientTiedToItsConnection) {
  wire::Headers client;
  std::string named;
  for (int i = 0; i < 2000; ++i) {
    client.add("X-" + std::to_string(i), "1");
    if (i % 2 == 0) named += (i % 4 == 0 ? ",x-" : ", X-") + std::to_string(i) + " ";
  }
  client.add("Connection", named.substr(1));
  client.add("Connection", "x-1");
  const auto left = headers_for_worker(client, ForwardAuthorization::No, {});
  EXPECT_EQ(left.size(), 999U);
  EXPECT_FALSE(left.find("x-1"));
  EXPECT_FALSE(left.find("X-1998"));
  EXPECT_TRUE(left.find("x-1999"));
}

TEST(HeadersForWorkers, LeaveOutWhatTheClientTiedToItsConnection) {
  const auto client = headers({{"Connection", "close, X-Hop"}, {"x-hop", "1"}, {"X-Hop-Not", "2"}});
  EXPECT_EQ(text(headers_for_worker(client, ForwardAuthorization::Yes)), "X-Hop-Not: 2\n");
}

TEST(HeadersForWorkers, CarryTheKeyOnlyWhereItIsTheEngines) {
  const auto client = headers({{"authorization", "Bearer k"}});
  EXPECT_EQ(text(headers_for_worker(client, ForwardAuthorization::Yes)),
            "authorization: Bearer k\n");
  EXPECT_EQ(text(headers_for_worker(client, ForwardAuthorization::No)), "");
}

TEST(HeadersForClients, AreTheWorkersWithoutWhatBatonWritesItself) {
  const auto worker = headers({{"date", "now"},
                               {"server", "uvicorn"},
                               {"content-type", "text/event-stream"},
                               {"Content-Length", "5"},
                               {"Transfer-Encoding", "chunked"},
                               {"Connection", "keep-alive, X-Hop"},
                               {"X-Hop", "1"},
                               {"x-request-id", "theirs"},
                               {"Cache-Control", "no-cache"}});
  EXPECT_EQ(text(headers_for_client(worker)),
            "content-type: text/event-stream\nCache-Control: no-cache\n");
}

}  // namespace
}  // namespace baton::pipeline
