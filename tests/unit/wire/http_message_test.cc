// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/http_message.h"

#include <gtest/gtest.h>

namespace baton::wire {
namespace {

TEST(Headers, KeepOrderAndSpelling) {
  Headers headers;
  headers.add("X-B", "2");
  headers.add("x-a", "");
  headers.add("X-b", "3");
  ASSERT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers[0].name, "X-B");
  EXPECT_EQ(headers[0].value, "2");
  EXPECT_EQ(headers[1].name, "x-a");
  EXPECT_EQ(headers[1].value, "");
  EXPECT_EQ(headers[2].value, "3");
}

TEST(Headers, FindTheFirstOfANameInAnyCase) {
  Headers headers;
  headers.add("Content-Type", "a");
  headers.add("content-type", "b");
  EXPECT_EQ(headers.find("CONTENT-TYPE"), "a");
  EXPECT_FALSE(headers.find("content-typ"));
}

TEST(Headers, RemoveEveryFieldOfAName) {
  Headers headers;
  headers.add("Cookie", "1");
  headers.add("Accept", "x");
  headers.add("cookie", "2");
  headers.remove("COOKIE");
  ASSERT_EQ(headers.size(), 1U);
  EXPECT_EQ(headers[0].name, "Accept");
  EXPECT_EQ(headers[0].value, "x");
  headers.clear();
  EXPECT_TRUE(headers.empty());
}

TEST(Headers, FindATokenInAnyFieldOfAList) {
  Headers headers;
  headers.add("Connection", "keep-alive ,\tUpgrade");
  headers.add("connection", "X-Mine");
  EXPECT_TRUE(headers.has_token("connection", "upgrade"));
  EXPECT_TRUE(headers.has_token("connection", "Keep-Alive"));
  EXPECT_TRUE(headers.has_token("connection", "x-mine"));
  EXPECT_FALSE(headers.has_token("connection", "keep"));
  EXPECT_FALSE(headers.has_token("upgrade", "upgrade"));
}

TEST(Headers, LettersAloneIgnoreCase) {
  EXPECT_TRUE(equal_ignoring_case("aZ-09", "Az-09"));
  EXPECT_FALSE(equal_ignoring_case("[", "{"));  // differ by the same bit as letters do
  EXPECT_FALSE(equal_ignoring_case("a", "aa"));
}

TEST(RequestHead, PathEndsAtTheQuery) {
  RequestHead head;
  head.target = "/v1/models?limit=1?2";
  EXPECT_EQ(head.path(), "/v1/models");
  head.target = "/health";
  EXPECT_EQ(head.path(), "/health");
}

}  // namespace
}  // namespace baton::wire
