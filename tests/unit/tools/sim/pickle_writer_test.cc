// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// Against `pickle.dumps(…, protocol=5).hex()` of CPython 3.11, with texts that were decoded one by one.
#include "tools/sim/pickle_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace baton::sim {
namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

using Write = std::function<void(PickleWriter&)>;

std::vector<std::uint8_t> pickled(const Write& write) {
  PickleWriter writer;
  write(writer);
  return std::move(writer).finish();
}

Write numbers(const std::vector<std::int64_t>& values) {
  return [values](PickleWriter& writer) {
    writer.open_tuple(values.size());
    for (const std::int64_t value : values) writer.integer(value);
    writer.close_tuple(values.size());
  };
}

Write texts(const std::vector<std::string>& values) {
  return [values](PickleWriter& writer) {
    writer.open_tuple(values.size());
    for (const std::string& value : values) writer.text(value);
    writer.close_tuple(values.size());
  };
}

Write text(const std::string& value) {
  return [value](PickleWriter& writer) { writer.text(value); };
}

struct Case {
  const char* python;
  Write write;
  const char* expected;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& one : cases) EXPECT_EQ(hex(pickled(one.write)), one.expected) << one.python;
}

TEST(PickleWriter, WhatIsShorterThanFourBytesHasNoFrame) {
  expect_all({
      {"None", [](PickleWriter& writer) { writer.none(); }, "80054e2e"},
      {"7", [](PickleWriter& writer) { writer.integer(7); }, "80054b072e"},
      {"()", numbers({}), "8005292e"},
      {"''", text(""), "80059504000000000000008c00942e"},
  });
}

TEST(PickleWriter, TuplesHaveAnOpcodeForEachLengthUpToThree) {
  expect_all({
      {"(1,)", numbers({1}), "80059505000000000000004b0185942e"},
      {"(1, 2)", numbers({1, 2}), "80059507000000000000004b014b0286942e"},
      {"(1, 2, 3)", numbers({1, 2, 3}), "80059509000000000000004b014b024b0387942e"},
      {"(1, 2, 3, 4)", numbers({1, 2, 3, 4}), "8005950c00000000000000284b014b024b034b0474942e"},
  });
}

TEST(PickleWriter, NumbersAreAsShortAsTheyCanBe) {
  constexpr std::int64_t k31 = std::int64_t{1} << 31U;
  constexpr std::int64_t k39 = std::int64_t{1} << 39U;
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  expect_all({
      {"(0, 255, 256, 65535)", numbers({0, 255, 256, 65535}),
       "8005950e00000000000000284b004bff4d00014dffff74942e"},
      {"(65536, 2**31-1, 2**31, 2**32-1)", numbers({65536, k31 - 1, k31, 2 * k31 - 1}),
       "8005951c00000000000000284a000001004affffff7f8a0500000080008a05ffffffff0074942e"},
      {"(-1, -2**31, -2**31-1, -2**39)", numbers({-1, -k31, -k31 - 1, -k39}),
       "8005951c00000000000000284affffffff4a000000808a05ffffff7fff8a05000000008074942e"},
      {"(-2**39-1, 2**39, -2**63, 2**63-1)", numbers({-k39 - 1, k39, kLeast, kMost}),
       "8005952800000000000000288a06ffffffff7fff8a060000000080008a0800000000000000808a08fffffffffff"
       "fff"
       "7f74942e"},
  });
}

TEST(PickleWriter, TextsAndBytesAreMemoized) {
  expect_all({
      {"'seed'", text("seed"), "80059508000000000000008c0473656564942e"},
      {"b'ab'", [](PickleWriter& writer) { writer.bytes(std::vector<std::uint8_t>{'a', 'b'}); },
       "800595060000000000000043026162942e"},
      {"(('id', -2), 'salt')",
       [](PickleWriter& writer) {
         writer.open_tuple(2);
         writer.open_tuple(2);
         writer.text("id");
         writer.integer(-2);
         writer.close_tuple(2);
         writer.text("salt");
         writer.close_tuple(2);
       },
       "80059516000000000000008c026964944afeffffff86948c0473616c749486942e"},
  });
}

// CPython has one object for each character below U+0100, and one empty text.
TEST(PickleWriter, OnlyWhatIsOneObjectIsReferredBackTo) {
  expect_all({
      {"('ab', 'ab')", texts({"ab", "ab"}), "8005950d000000000000008c026162948c0261629486942e"},
      {"('a', 'a')", texts({"a", "a"}), "80059509000000000000008c016194680086942e"},
      {"('', '')", texts({"", ""}), "80059508000000000000008c0094680086942e"},
      {"('\u00e9', '\u00e9', '\u0100', '\u0100')", texts({"\u00e9", "\u00e9", "\u0100", "\u0100"}),
       "8005951500000000000000288c02c3a99468008c02c480948c02c4809474942e"},
  });
  std::vector<std::string> many;
  for (int i = 0; i < 300; ++i) many.push_back("x" + std::to_string(i));
  many.insert(many.end(), {"a", "a"});
  const std::string bytes = hex(pickled(texts(many)));
  EXPECT_EQ(bytes.size() / 2, 2014U);
  EXPECT_TRUE(bytes.ends_with("948c0478323939948c0161946a2c01000074942e"))
      << "the 300th of the memo";
}

TEST(PickleWriter, MoreThan255BytesHaveALongerHead) {
  const std::string letters = hex(pickled(text(std::string(256, 's'))));
  EXPECT_TRUE(
      letters.starts_with("8005950701000000000000"
                          "5800010000"
                          "7373"))
      << letters;
  const auto bytes =
      pickled([](PickleWriter& writer) { writer.bytes(std::vector<std::uint8_t>(300, 's')); });
  EXPECT_TRUE(
      hex(bytes).starts_with("8005953301000000000000"
                             "422c010000"
                             "7373"));
  EXPECT_EQ(bytes.size(), 318U);
}

TEST(PickleWriter, AFrameOf64KibEndsBeforeTheNextObject) {
  const auto bytes = pickled([](PickleWriter& writer) {
    writer.open_tuple(3);
    writer.text(std::string(65535, 's'));
    writer.integer(1);
    writer.integer(2);
    writer.close_tuple(3);
  });
  EXPECT_EQ(bytes.size(), 65568U);
  EXPECT_TRUE(
      hex(bytes).starts_with("8005"
                             "950500010000000000"
                             "58ffff0000"
                             "7373"));
  EXPECT_TRUE(
      hex(bytes).ends_with("737394"
                           "950700000000000000"
                           "4b014b0287942e"));
}

TEST(PickleWriter, ATextOf64KibIsOutsideOfFrames) {
  const auto bytes = pickled(text(std::string(65536, 's')));
  EXPECT_EQ(bytes.size(), 65545U);
  EXPECT_TRUE(
      hex(bytes).starts_with("8005"
                             "5800000100"
                             "7373"));
  EXPECT_TRUE(
      hex(bytes).ends_with("7373"
                           "942e"))
      << "too short for a frame";
}

}  // namespace
}  // namespace baton::sim
