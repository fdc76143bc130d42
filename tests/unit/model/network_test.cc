// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "model/network.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::model {
namespace {

bool matches(std::string_view network, std::string_view address) {
  const auto parsed = parse_network(network);
  const auto host = parse_address(address);
  EXPECT_TRUE(parsed) << network;
  EXPECT_TRUE(host) << address;
  return parsed && host && parsed->contains(*host);
}

TEST(Address, IsTheSameHoweverItIsWritten) {
  EXPECT_EQ(parse_address("192.0.2.1"), parse_address("::ffff:192.0.2.1"));
  EXPECT_EQ(parse_address("192.0.2.1"), parse_address("::FFFF:c000:0201"));
  EXPECT_EQ(parse_address("2001:db8:0::1"), parse_address("2001:DB8::1"));
  EXPECT_EQ(parse_address("fe80::1%eth0"), parse_address("fe80::1"));
  EXPECT_NE(parse_address("::1"), parse_address("127.0.0.1"));
}

TEST(Address, OfAnotherShapeIsNone) {
  for (const char* text :
       {"", "localhost", "1.2.3", "1.2.3.4.5", "256.0.0.1", "01.2.3.4", "1.2.3.4 ", " ::1", "[::1]",
        "::1::", "1.2.3.4:80", "%eth0", "1.2.3.4%eth0", "12345::", ":", "0x7f.0.0.1"}) {
    EXPECT_EQ(parse_address(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_address(std::string_view("::1\0x", 5)), std::nullopt);
  EXPECT_EQ(parse_address(std::string(100'000, '1')), std::nullopt);
}

TEST(Network, ContainsWhatSharesItsPrefix) {
  EXPECT_TRUE(matches("10.0.0.0/8", "10.255.255.255"));
  EXPECT_FALSE(matches("10.0.0.0/8", "11.0.0.0"));
  EXPECT_FALSE(matches("10.0.0.0/8", "9.255.255.255"));
  EXPECT_TRUE(matches("192.168.4.0/22", "192.168.7.255"));
  EXPECT_FALSE(matches("192.168.4.0/22", "192.168.8.0"));
  EXPECT_TRUE(matches("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(matches("2001:db8::/33", "2001:db8:8000::1"));
}

TEST(Network, WithoutBitsIsOneAddress) {
  EXPECT_TRUE(matches("192.0.2.1", "192.0.2.1"));
  EXPECT_TRUE(matches("192.0.2.1/32", "192.0.2.1"));
  EXPECT_FALSE(matches("192.0.2.1", "192.0.2.0"));
  EXPECT_TRUE(matches("::1/128", "::1"));
  EXPECT_FALSE(matches("::1", "::2"));
}

TEST(Network, OfIpv4MatchesMappedAddressesAndOnlyThose) {
  EXPECT_TRUE(matches("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_TRUE(matches("::ffff:10.0.0.0/104", "10.1.2.3"));
  EXPECT_TRUE(matches("0.0.0.0/0", "255.255.255.255"));
  EXPECT_FALSE(matches("0.0.0.0/0", "::1"));
  EXPECT_FALSE(matches("0.0.0.0/0", "::a01:203"));  // IPv4-compatible, not mapped
  EXPECT_TRUE(matches("::/0", "1.2.3.4"));
  EXPECT_TRUE(matches("::/0", "fe80::1"));
}

TEST(Network, OfAnotherShapeIsNone) {
  for (const char* text :
       {"", "/8", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/8/8",
        "10.0.0.0/ 8", "10.0.0.0/8x", "10.0.0.0/255.0.0.0", "10.0.0.1/8", "2001:db8::1/64",
        "fe80::1%eth0", "fe80::%eth0/64", "10.0.0.0/99999999999999999999", "host/8"}) {
    EXPECT_EQ(parse_network(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace baton::model
