// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/msgpack_reader.h"

#include "support/msgpack_encoder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace baton::wire {
namespace {

using Kind = MsgpackReader::Kind;
using test::MsgpackEncoder;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::span<const std::byte> bytes_of(std::string&& text) = delete;  // it would dangle

TEST(MsgpackReader, ReadsIntegersOfEveryWidth) {
  for (const std::uint64_t value :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{127}, std::uint64_t{128},
        std::uint64_t{255}, std::uint64_t{256}, std::uint64_t{65535}, std::uint64_t{65536},
        std::uint64_t{0xffffffff}, std::uint64_t{0x100000000},
        std::numeric_limits<std::uint64_t>::max()}) {
    for (const unsigned least : {0U, 1U, 2U, 4U, 8U}) {
      // With and without bytes behind it, as a wide load would want them.
      for (const bool more : {false, true}) {
        MsgpackEncoder encoder;
        encoder.unsigned_integer(value, least);
        if (more) encoder.number(1.5);
        MsgpackReader reader(encoder.span());
        EXPECT_EQ(reader.kind(), Kind::Integer);
        EXPECT_EQ(reader.read_unsigned(), value) << least;
        EXPECT_EQ(reader.at_end(), !more);
        EXPECT_FALSE(reader.broken());
      }
    }
  }
}

TEST(MsgpackReader, ReadsNegativeIntegersAsTwosComplement) {
  for (const std::int64_t value :
       {std::int64_t{-1}, std::int64_t{-32}, std::int64_t{-33}, std::int64_t{-128},
        std::int64_t{-129}, std::int64_t{-32768}, std::int64_t{-32769},
        std::int64_t{std::numeric_limits<std::int32_t>::min()},
        std::int64_t{std::numeric_limits<std::int32_t>::min()} - 1,
        std::numeric_limits<std::int64_t>::min()}) {
    for (const unsigned least : {0U, 1U, 2U, 4U, 8U}) {
      MsgpackEncoder encoder;
      encoder.signed_integer(value, least);
      MsgpackReader reader(encoder.span());
      EXPECT_EQ(reader.read_unsigned(), std::nullopt) << value;
      EXPECT_EQ(reader.read_integer(), static_cast<std::uint64_t>(value)) << least;
      EXPECT_TRUE(reader.at_end());
      MsgpackReader again(encoder.span());
      EXPECT_EQ(again.read_number(), static_cast<double>(value));
    }
  }
  for (const unsigned least : {1U, 2U, 4U, 8U}) {
    MsgpackEncoder encoder;
    encoder.signed_integer(100, least);
    EXPECT_EQ(MsgpackReader(encoder.span()).read_unsigned(), 100U);
  }
}

TEST(MsgpackReader, ReadsNumbersTextsAndBytes) {
  MsgpackEncoder encoder;
  encoder.number(1755000000.25).number(0.5F).unsigned_integer(7).nil().boolean(true);
  for (const unsigned least : {0U, 1U, 2U, 4U}) encoder.text("medium", least);
  encoder.text("").text(std::string(300, 'x'));
  for (const unsigned least : {0U, 2U, 4U}) encoder.bytes("digest", least);
  MsgpackReader reader(encoder.span());
  EXPECT_EQ(reader.kind(), Kind::Float);
  EXPECT_EQ(reader.read_number(), 1755000000.25);
  EXPECT_EQ(reader.read_number(), 0.5);
  EXPECT_EQ(reader.read_number(), 7.0);
  EXPECT_TRUE(reader.read_nil());
  EXPECT_EQ(reader.kind(), Kind::Bool);
  EXPECT_TRUE(reader.skip());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(reader.read_text(), "medium");
  EXPECT_EQ(reader.read_text(), "");
  EXPECT_EQ(reader.read_text(), std::string(300, 'x'));
  for (int i = 0; i < 3; ++i) {
    const auto read = reader.read_bytes();
    ASSERT_TRUE(read);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(read->data()), read->size()), "digest");
  }
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(reader.kind(), Kind::None);
}

TEST(MsgpackReader, LeavesAValueOfAnotherKind) {
  MsgpackEncoder encoder;
  encoder.text("text");
  MsgpackReader reader(encoder.span());
  EXPECT_FALSE(reader.read_nil());
  EXPECT_FALSE(reader.read_integer());
  EXPECT_FALSE(reader.read_unsigned());
  EXPECT_FALSE(reader.read_number());
  EXPECT_FALSE(reader.read_bytes());
  EXPECT_FALSE(reader.read_array());
  EXPECT_FALSE(reader.read_map());
  EXPECT_FALSE(reader.broken());
  EXPECT_EQ(reader.read_text(), "text");
}

TEST(MsgpackReader, CountsElementsThatFit) {
  for (const unsigned least : {0U, 2U, 4U}) {
    MsgpackEncoder encoder;
    encoder.array(2, least).nil().map(1, least).nil().nil();
    MsgpackReader reader(encoder.span());
    EXPECT_EQ(reader.read_array(), 2U);
    EXPECT_TRUE(reader.read_nil());
    EXPECT_EQ(reader.read_map(), 1U);
  }
  MsgpackEncoder large;
  large.array(70'000);
  for (int i = 0; i < 70'000; ++i) large.nil();
  EXPECT_EQ(MsgpackReader(large.span()).read_array(), 70'000U);
}

// A count is only believed where each element has its byte.
TEST(MsgpackReader, BreaksOnLengthsThatAreNotThere) {
  using namespace std::string_literals;
  for (const std::string& text : {"\x91"s,
                                  "\x81\xc0"s,
                                  "\xdc\x00\x02\xc0"s,
                                  "\xdd\x7f\xff\xff\xff"s,
                                  "\xdd\xff\xff\xff\xff"s,
                                  "\xde\x00\x02\xc0\xc0\xc0"s,
                                  "\xdf\xff\xff\xff\xff\xc0"s,
                                  "\xa2x"s,
                                  "\xd9\x02x"s,
                                  "\xda\x00"s,
                                  "\xdb\xff\xff\xff\xffxx"s,
                                  "\xc4\x02x"s,
                                  "\xc6\xff\xff\xff\xff"s,
                                  "\xc4"s,
                                  "\xcc"s,
                                  "\xcd\x01"s,
                                  "\xce\x01\x01\x01"s,
                                  "\xcf\x01\x01\x01\x01\x01\x01\x01"s,
                                  "\xd0"s,
                                  "\xd3\x01"s,
                                  "\xca\x01"s,
                                  "\xcb\x01\x01\x01\x01\x01\x01\x01"s,
                                  "\xd4\x01"s,
                                  "\xd8\x01\x01"s,
                                  "\xc7\x02\x01x"s,
                                  "\xc9\xff\xff\xff\xff\x01"s,
                                  "\xc1"s,
                                  ""s}) {
    MsgpackReader reader(bytes_of(text));
    EXPECT_FALSE(reader.skip()) << testing::PrintToString(text);
    EXPECT_TRUE(reader.broken());
    EXPECT_EQ(reader.kind(), Kind::None);
    EXPECT_FALSE(reader.skip());
    reader.rewind(0);
    EXPECT_EQ(reader.kind(), Kind::None) << "it stays broken";
  }
  const std::string huge = "\xdd\x7f\xff\xff\xff"s;
  MsgpackReader array(bytes_of(huge));
  EXPECT_FALSE(array.read_array());
  EXPECT_TRUE(array.broken());
  const std::string half = "\x82\xc0\xc0\xc0"s;
  MsgpackReader map(bytes_of(half));
  EXPECT_FALSE(map.read_map());
  EXPECT_TRUE(map.broken());
}

TEST(MsgpackReader, SkipsWhateverThereIs) {
  using namespace std::string_literals;
  MsgpackEncoder value;
  value.map(3).text("a").array(3).unsigned_integer(1).signed_integer(-5, 4).number(2.0);
  value.nil().bytes("xyz").text("m").map(1).text("deep").array(0);
  for (const std::string& text :
       {value.encoded(), "\xc2"s, "\xd4\x01z"s, "\xd5\x01zz"s, "\xd8\x01"s + std::string(16, 'z'),
        "\xc7\x02\x01zz"s, "\xc8\x00\x02\x01zz"s, "\xc9\x00\x00\x00\x02\x01zz"s, "\x90"s,
        "\x80"s}) {
    const std::string followed = text + "\x2a";
    MsgpackReader reader(bytes_of(followed));
    EXPECT_TRUE(reader.skip()) << testing::PrintToString(text);
    EXPECT_EQ(reader.position(), text.size());
    EXPECT_EQ(reader.read_integer(), 42U);
  }
}

TEST(MsgpackReader, SkipsHoweverDeep) {
  for (const std::size_t depth : {20U, 40U, 1'000'000U}) {
    const std::string open(depth, '\x91');
    const std::string nested = open + "\xc0";
    MsgpackReader reader(bytes_of(nested));
    EXPECT_TRUE(reader.skip()) << depth;
    EXPECT_TRUE(reader.at_end());
    EXPECT_FALSE(MsgpackReader(bytes_of(open)).skip()) << "its innermost value is missing";
  }
  // Each level claims all that is left.
  std::string greedy;
  for (std::size_t left = 15; left > 0; --left) greedy += static_cast<char>(0x90 + left);
  greedy += "\xc0";
  EXPECT_FALSE(MsgpackReader(bytes_of(greedy)).skip());
}

TEST(MsgpackReader, ReadsManySmallNumbersAtOnce) {
  std::vector<std::uint32_t> expected;
  MsgpackEncoder encoder;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const std::uint32_t value = (i * 2654435761U) >> (i % 32);
    expected.push_back(value);
    constexpr std::array kLeast = {0U, 1U, 2U, 4U, 8U, 0U, 0U};
    encoder.unsigned_integer(value, kLeast[i % kLeast.size()]);
  }
  for (const std::uint32_t count : {0U, 1U, 3U, 3999U, 4000U}) {
    std::vector<std::uint32_t> read(count);
    MsgpackReader reader(encoder.span());
    EXPECT_EQ(reader.read_u32s(read.data(), count), count);
    EXPECT_EQ(read, std::vector(expected.begin(), expected.begin() + count));
    EXPECT_EQ(reader.at_end(), count == 4000);
  }
}

TEST(MsgpackReader, StopsAtWhatIsNoSmallNumber) {
  const auto stops_at = [](const MsgpackEncoder& odd) {
    MsgpackEncoder encoder;
    encoder.unsigned_integer(1).unsigned_integer(70'000).raw(odd.encoded()).unsigned_integer(3);
    std::array<std::uint32_t, 4> read{};
    MsgpackReader reader(encoder.span());
    EXPECT_EQ(reader.read_u32s(read.data(), 4), 2U);
    EXPECT_FALSE(reader.broken());
    EXPECT_TRUE(reader.skip());
    EXPECT_EQ(reader.read_integer(), 3U);
  };
  stops_at(MsgpackEncoder().text("x"));
  stops_at(MsgpackEncoder().nil());
  stops_at(MsgpackEncoder().signed_integer(-1));
  stops_at(MsgpackEncoder().signed_integer(-1, 8));
  stops_at(MsgpackEncoder().unsigned_integer(0x100000000));
  stops_at(MsgpackEncoder().array(1).unsigned_integer(1));
  std::array<std::uint32_t, 2> read{};
  const std::string cut("\x05\xce\x01", 3);
  MsgpackReader reader(bytes_of(cut));
  EXPECT_EQ(reader.read_u32s(read.data(), 2), 1U);
  EXPECT_TRUE(reader.broken());
}

TEST(MsgpackReader, GoesBack) {
  MsgpackEncoder encoder;
  encoder.text("a").text("b");
  MsgpackReader reader(encoder.span());
  EXPECT_TRUE(reader.skip());
  const auto second = reader.position();
  EXPECT_EQ(reader.read_text(), "b");
  reader.rewind(second);
  EXPECT_EQ(reader.read_text(), "b");
  EXPECT_EQ(reader.between(0, second).size(), 2U);
}

TEST(MsgpackReader, TakesOnlyTheBytesItIsToldOf) {
  MsgpackEncoder encoder;
  encoder.text("a").text("a").text("b");
  MsgpackReader reader(encoder.span());
  EXPECT_EQ(reader.read_text(), "a");
  const auto one = reader.between(0, reader.position());
  EXPECT_TRUE(reader.take(one));
  EXPECT_FALSE(reader.take(one));
  EXPECT_EQ(reader.read_text(), "b");
  EXPECT_FALSE(reader.take(one)) << "there is nothing left";
  EXPECT_TRUE(reader.take({}));
  EXPECT_FALSE(reader.broken());
}

}  // namespace
}  // namespace baton::wire
