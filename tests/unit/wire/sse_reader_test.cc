// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/sse_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::wire {
namespace {

struct Seen {
  std::string raw;                // all of it
  std::vector<std::string> data;  // of the events that have some
  std::size_t held = 0;
  bool operator==(const Seen&) const = default;
};

Seen read(std::string_view bytes, std::size_t step) {
  SseReader reader;
  Seen seen;
  while (!bytes.empty()) {
    // A buffer of its own, so that a view kept too long is a fault the sanitizer sees.
    const std::string piece(bytes.substr(0, step));
    bytes.remove_prefix(piece.size());
    reader.feed(piece);
    while (const auto event = reader.next()) {
      seen.raw += event->raw;
      if (!event->data.empty()) seen.data.emplace_back(event->data);
    }
  }
  seen.held = reader.held();
  return seen;
}

// The events, which must not depend on how the stream was cut.
Seen read(std::string_view bytes) {
  const auto whole = read(bytes, bytes.size());
  for (std::size_t step = 1; step < bytes.size(); ++step) {
    EXPECT_EQ(read(bytes, step), whole) << "in pieces of " << step;
  }
  EXPECT_EQ(whole.raw, bytes.substr(0, bytes.size() - whole.held));
  return whole;
}

using Data = std::vector<std::string>;

TEST(SseReader, CutsEventsAtBlankLinesOfEveryKind) {
  EXPECT_EQ(read("data: a\n\ndata: [DONE]\n\n").data, (Data{"a", "[DONE]"}));
  EXPECT_EQ(read("data: a\r\n\r\ndata: [DONE]\r\n\r\n").data, (Data{"a", "[DONE]"}));
  EXPECT_EQ(read("data: a\r\rdata: [DONE]\r\r").data, (Data{"a", "[DONE]"}));
  EXPECT_EQ(read("data: a\n\r\ndata: b\r\n\ndata: c\r\n\rdata: d\n\r").data,
            (Data{"a", "b", "c", "d"}));
}

TEST(SseReader, HoldsNothingAfterACleanEnd) {
  for (const std::string_view stream : {"data: a\n\n", "data: a\r\n\r\n", "data: a\r\r"}) {
    EXPECT_EQ(read(stream).held, 0U);
  }
}

TEST(SseReader, JoinsDataLinesAndLeavesOtherFieldsOut) {
  EXPECT_EQ(read("event: x\nid: 1\ndata: a\n: note\ndata:b\nretry: 3\ndata\ndata:  c\n\n").data,
            (Data{"a\nb\n\n c"}));
  EXPECT_EQ(read("data:a\r\ndata:b\r\n\r\n").data, (Data{"a\nb"}));
  EXPECT_EQ(read("database: x\n\nda: y\n\n:data: z\n\n data: w\n\n").data, Data{});
}

TEST(SseReader, ReturnsCommentsWithoutData) {
  SseReader reader;
  reader.feed(": ping\n\n\ndata: x\n\n");
  EXPECT_EQ(reader.next()->raw, ": ping\n\n");
  EXPECT_EQ(reader.next()->raw, "\n");
  EXPECT_EQ(reader.next()->data, "x");
  EXPECT_FALSE(reader.next());
}

TEST(SseReader, DoesNotCopyAnEventThatCameWhole) {
  const std::string bytes = "data: one\n\ndata: two\n\n";
  SseReader reader;
  reader.feed(bytes);
  EXPECT_EQ(reader.next()->raw.data(), bytes.data());
  const auto second = reader.next();
  EXPECT_EQ(second->raw.data(), bytes.data() + 11);
  EXPECT_EQ(second->data.data(), bytes.data() + 17);
}

TEST(SseReader, HoldsAnUnfinishedEvent) {
  SseReader reader;
  reader.feed("data: one\n\ndata: tw");
  EXPECT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.held(), 8U);
  reader.feed("o\n");
  EXPECT_FALSE(reader.next());
  reader.feed("\n");
  const auto event = reader.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->raw, "data: two\n\n");
  EXPECT_EQ(event->data, "two");
  EXPECT_EQ(reader.held(), 0U);
  EXPECT_FALSE(reader.next());
}

TEST(SseReader, DoesNotWaitForTheLfOfACutCrlf) {
  SseReader reader;
  reader.feed("data: a\r\n\r");
  const auto event = reader.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->data, "a");
  EXPECT_FALSE(reader.next());
  reader.feed("\ndata: b\r\n\r\n");
  const auto rest = reader.next();
  EXPECT_EQ(rest->raw, "\n");
  EXPECT_EQ(rest->data, "");
  EXPECT_EQ(reader.next()->data, "b");
  EXPECT_FALSE(reader.next());
}

TEST(SseReader, GivesUpOnAnEventOverTheLimit) {
  SseReader reader(16);
  reader.feed("data: 0123456789");
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.overflowed());
  reader.feed("x");
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.overflowed());
  EXPECT_EQ(reader.held(), 0U);
  reader.feed("\n\ndata: late\n\n");
  EXPECT_FALSE(reader.next());
}

TEST(SseReader, LimitsOnlyWhatItHolds) {
  SseReader reader(16);
  const std::string large = "data: " + std::string(100, 'x') + "\n\n";
  reader.feed(large);
  EXPECT_EQ(reader.next()->data.size(), 100U);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.overflowed());
}

TEST(SseReader, ReadsLongStreamsOfOneLineEndInLinearTime) {
  std::string stream;
  for (int i = 0; i < 200000; ++i) stream += "data: x\r\r";
  EXPECT_EQ(read(stream, stream.size()).data.size(), 200000U);
}

}  // namespace
}  // namespace baton::wire
