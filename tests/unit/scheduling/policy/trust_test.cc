// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "scheduling/policy/trust.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace baton::scheduling {
namespace {

config::Trust trusting(std::initializer_list<std::string_view> networks) {
  config::Trust trust{.routing_headers = true, .sources = {}};
  for (const std::string_view one : networks) {
    trust.sources.push_back(model::parse_network(one).value());
  }
  return trust;
}

TEST(Trust, IsGivenToNobodyUnlessConfigured) {
  config::Trust off = trusting({"10.0.0.0/8"});
  off.routing_headers = false;
  EXPECT_EQ(trust_in(off, "10.0.0.1"), Trusted::No);
  EXPECT_EQ(trust_in({}, "127.0.0.1"), Trusted::No);
}

TEST(Trust, IsGivenToEverySourceWhereNoneIsNamed) {
  EXPECT_EQ(trust_in(trusting({}), "203.0.113.9"), Trusted::Yes);
  EXPECT_EQ(trust_in(trusting({}), ""), Trusted::Yes);
}

TEST(Trust, IsGivenToTheSourcesNamed) {
  const config::Trust trust = trusting({"192.0.2.7", "10.0.0.0/8", "fd00::/8"});
  for (const char* source :
       {"192.0.2.7", "10.255.255.255", "::ffff:10.0.0.1", "fd12::1", "fd12::1%eth0"}) {
    EXPECT_EQ(trust_in(trust, source), Trusted::Yes) << source;
  }
  for (const char* source : {"192.0.2.6", "192.0.2.8", "11.0.0.0", "9.255.255.255", "fe00::1",
                             "::10.0.0.1", "", "localhost", "10.0.0.1:80", "[fd00::1]"}) {
    EXPECT_EQ(trust_in(trust, source), Trusted::No) << source;
  }
}

}  // namespace
}  // namespace baton::scheduling
