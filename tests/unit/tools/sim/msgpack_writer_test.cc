// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/msgpack_writer.h"

#include "unit/tools/sim/hex.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace baton::sim {
namespace {

template <typename Write>
std::string written(Write write) {
  MsgpackWriter out;
  write(out);
  return hex(out.take());
}

std::string number(std::uint64_t value) {
  return written([value](MsgpackWriter& out) { out.number(value); });
}

std::string negative(std::int64_t value) {
  return written([value](MsgpackWriter& out) { out.signed_number(value); });
}

// Expectations are from the specification's table of formats.
TEST(MsgpackWriter, NumbersTakeTheirShortestForm) {
  EXPECT_EQ(number(0), "00");
  EXPECT_EQ(number(127), "7f");
  EXPECT_EQ(number(128), "cc80");
  EXPECT_EQ(number(255), "ccff");
  EXPECT_EQ(number(256), "cd0100");
  EXPECT_EQ(number(65535), "cdffff");
  EXPECT_EQ(number(65536), "ce00010000");
  EXPECT_EQ(number(0xFFFFFFFF), "ceffffffff");
  EXPECT_EQ(number(0x100000000), "cf0000000100000000");
  EXPECT_EQ(number(~std::uint64_t{0}), "cfffffffffffffffff");
}

TEST(MsgpackWriter, NegativeNumbersToo) {
  EXPECT_EQ(negative(5), "05");
  EXPECT_EQ(negative(-1), "ff");
  EXPECT_EQ(negative(-32), "e0");
  EXPECT_EQ(negative(-33), "d0df");
  EXPECT_EQ(negative(-128), "d080");
  EXPECT_EQ(negative(-129), "d1ff7f");
  EXPECT_EQ(negative(-32769), "d2ffff7fff");
  EXPECT_EQ(negative(-2147483649), "d3ffffffff7fffffff");
  EXPECT_EQ(negative(std::numeric_limits<std::int64_t>::min()), "d38000000000000000");
}

TEST(MsgpackWriter, LengthsTakeTheirShortestForm) {
  const auto text = [](std::size_t size) {
    return written([size](MsgpackWriter& out) { out.text(std::string(size, 'a')); });
  };
  const auto bytes = [](std::size_t size) {
    return written([size](MsgpackWriter& out) { out.bytes(std::vector<std::uint8_t>(size)); });
  };
  const auto array = [](std::size_t size) {
    return written([size](MsgpackWriter& out) { out.array(size); });
  };
  const auto map = [](std::size_t size) {
    return written([size](MsgpackWriter& out) { out.map(size); });
  };
  EXPECT_EQ(text(0), "a0");
  EXPECT_TRUE(text(31).starts_with("bf61"));
  EXPECT_TRUE(text(32).starts_with("d92061"));
  EXPECT_TRUE(text(256).starts_with("da010061"));
  EXPECT_TRUE(text(65536).starts_with("db0001000061"));
  EXPECT_TRUE(bytes(32).starts_with("c420"));
  EXPECT_TRUE(bytes(256).starts_with("c50100"));
  EXPECT_TRUE(bytes(65536).starts_with("c600010000"));
  EXPECT_EQ(array(15), "9f");
  EXPECT_EQ(array(16), "dc0010");
  EXPECT_EQ(array(65536), "dd00010000");
  EXPECT_EQ(map(1), "81");
  EXPECT_EQ(map(16), "de0010");
  EXPECT_EQ(map(65536), "df00010000");
}

TEST(MsgpackWriter, NilAndReals) {
  EXPECT_EQ(written([](MsgpackWriter& out) { out.nil(); }), "c0");
  EXPECT_EQ(written([](MsgpackWriter& out) { out.real(1755000000.25); }), "cb41da26cb30100000");
}

}  // namespace
}  // namespace baton::sim
