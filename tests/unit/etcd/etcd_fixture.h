// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "etcd/client.h"
#include "support/fake_engine.h"
#include "support/io_fixture.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::etcd {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FakeEngine;
using test::FakePeer;
using test::SeenRequest;

// What a fake etcd answers to one request.
using Answer = std::function<std::string(const SeenRequest&)>;

inline bool is_for(const SeenRequest& request, std::string_view path) {
  return request.head.starts_with(fmt::format("POST {} HTTP/1.1\r\n", path));
}

// Answers each request, one per connection.
inline FakeEngine::Script answering(Answer answer) {
  return [answer = std::move(answer)](FakePeer& peer) {
    if (const auto request = peer.read_request()) peer.write(answer(*request));
  };
}

// Takes requests and never answers.
inline FakeEngine::Script silent() {
  return [](FakePeer& peer) { peer.wait_for_drop(); };
}

inline std::string refused(int status, int code, std::string_view words) {
  return test::response(
      status, fmt::format(R"({{"error":"{0}","message":"{0}","code":{1}}})", words, code));
}

inline const std::string kPutDone = test::response(200, R"({"header":{"revision":"5"}})");

// Calls of a client to fake servers.
struct EtcdFixture : test::IoFixture {
  Reply<std::int64_t> put(Client& client) {
    Reply<std::int64_t> reply;
    run([&]() -> awaitable<void> { reply = co_await client.put("a", "b", 0); });
    return reply;
  }
  Reply<Listing> list(Client& client, std::string prefix = "/") {
    Reply<Listing> reply;
    run([&]() -> awaitable<void> { reply = co_await client.list(prefix); });
    return reply;
  }
  static std::string problem(const auto& reply) {
    return reply ? std::string("none") : reply.error().message;
  }

  static Options options(const std::vector<model::Endpoint>& endpoints) {
    Options made;
    for (const auto& endpoint : endpoints) made.endpoints.push_back({endpoint, false});
    return made;
  }
};

}  // namespace baton::etcd
