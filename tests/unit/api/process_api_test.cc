// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/process_api.h"

#include "unit/api/answer_recorder.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include <string>

namespace baton::api {
namespace {

AnswerRecorder answer_of(const std::string& method, const std::string& target) {
  const http::Routes routes(process_routes("1.2.3"));
  AnswerRecorder recorder;
  boost::asio::io_context io;
  boost::asio::co_spawn(io, call_route(routes, method, target, "", recorder),
                        boost::asio::detached);
  io.run();
  return recorder;
}

TEST(ProcessApi, TellsThatTheProcessServes) {
  for (const std::string target : {"/health", "/ping", "/health?deep=1"}) {
    const AnswerRecorder answer = answer_of("GET", target);
    EXPECT_EQ(answer.status, 200) << target;
    EXPECT_EQ(answer.body, R"({"status":"ok"})") << target;
    EXPECT_EQ(answer.headers.find("content-type"), "application/json");
  }
  EXPECT_EQ(answer_of("HEAD", "/health").status, 200);
  EXPECT_EQ(answer_of("POST", "/ping").status, 200);
}

TEST(ProcessApi, TellsTheRelease) {
  EXPECT_EQ(answer_of("GET", "/version").body, R"({"version":"1.2.3"})");
}

TEST(ProcessApi, AsksForNoKey) {
  for (const http::Route& route : process_routes(""))
    EXPECT_EQ(route.access, http::Access::Open) << route.path;
}

}  // namespace
}  // namespace baton::api
