// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/address.h"

#include <gtest/gtest.h>

namespace baton::sim {
namespace {

TEST(Address, IsHostAndPortBehindItsScheme) {
  EXPECT_EQ(parse_address("http://", "http://p1:8998"), (model::Endpoint{"p1", 8998}));
  EXPECT_EQ(parse_address("tcp://", "tcp://127.0.0.1:65535"),
            (model::Endpoint{"127.0.0.1", 65535}));
  EXPECT_EQ(parse_address("", "[::1]:80"), (model::Endpoint{"::1", 80}));
}

TEST(Address, AnythingElseIsNone) {
  for (const char* text : {"", "p1:8998", "http://", "http://p1", "http://p1:", "http://:80",
                           "http://p1:0", "http://p1:65536", "http://p1:80/", "http://p1:80x",
                           "http://a/b:80", "http://::1:80", "http://[]:80", "https://p1:80"}) {
    EXPECT_EQ(parse_address("http://", text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace baton::sim
