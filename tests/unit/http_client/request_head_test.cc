// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http_client/request_head.h"

#include <gtest/gtest.h>

namespace baton::http_client {
namespace {

TEST(RequestHead, IsARequestLineHostHeadersAndLength) {
  wire::Headers headers;
  headers.add("X-Request-Id", "7");
  EXPECT_EQ(request_head("POST", "/v1/completions", "[::1]:8000", headers, 123),
            "POST /v1/completions HTTP/1.1\r\n"
            "Host: [::1]:8000\r\n"
            "X-Request-Id: 7\r\n"
            "Content-Type: application/json\r\n"
            "Content-Length: 123\r\n"
            "\r\n");
}

TEST(RequestHead, HasTheLinesOfOneLegBehindThoseOfAll) {
  wire::Headers headers;
  headers.add("A", "b");
  EXPECT_EQ(request_head("POST", "/p", "h:1", headers, 2, "X-Request-Id: 7\r\nX-Rank: 3\r\n"),
            "POST /p HTTP/1.1\r\nHost: h:1\r\nA: b\r\n"
            "X-Request-Id: 7\r\nX-Rank: 3\r\nContent-Type: application/json\r\n"
            "Content-Length: 2\r\n\r\n");
}

TEST(RequestHead, NamesALengthButNoTypeWhereThereIsNoBody) {
  EXPECT_EQ(request_head("GET", "/server_info", "h:1", {}, 0),
            "GET /server_info HTTP/1.1\r\nHost: h:1\r\nContent-Length: 0\r\n\r\n");
}

}  // namespace
}  // namespace baton::http_client
