// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "kvcache/events/framing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace baton::kvcache {
namespace {

using std::string_literals::operator""s;

// Frames that live as long as the test's statement needs them.
struct Frames {
  explicit Frames(std::vector<std::string> texts) : owned(std::move(texts)) {
    for (const std::string& text : owned) views.push_back(std::as_bytes(std::span(text)));
  }
  std::vector<std::string> owned;
  std::vector<Bytes> views;
};

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const std::string kSeventeen = "\0\0\0\0\0\0\0\x11"s;
const std::string kEnd(8, '\xff');

TEST(Framing, ABatchHasTopicNumberAndPayload) {
  const Frames frames({"kv-events", "\0\0\0\1\0\0\0\0"s, "payload"});
  const auto batch = read_published(frames.views);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->topic, "kv-events");
  EXPECT_EQ(batch->sequence, std::uint64_t{1} << 32U);
  EXPECT_EQ(text_of(batch->payload), "payload");
}

TEST(Framing, TheTopicMayBeEmpty) {
  const Frames frames({"", kSeventeen, "payload"});
  const auto batch = read_published(frames.views);
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->topic, "");
  EXPECT_EQ(batch->sequence, 17U);
}

TEST(Framing, AnythingElseIsNoBatch) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"payload"},
      {kSeventeen, "payload"},
      {"", "", kSeventeen, "payload"},
      {"", "\x11", "payload"},
      {"", kSeventeen + "\0"s, "payload"},
      {"", kEnd, "payload"},  // the number of no batch
  };
  for (const auto& texts : wrong) EXPECT_FALSE(read_published(Frames(texts).views));
}

TEST(Framing, RepliesAreReadWithAndWithoutTopicAndDelimiter) {
  const std::vector<std::vector<std::string>> framings = {
      {"", kSeventeen, "payload"},               // vLLM up to 0.25, SGLang
      {"", "kv-events", kSeventeen, "payload"},  // vLLM from 0.26
      {"", "", kSeventeen, "payload"},
      {kSeventeen, "payload"},
  };
  for (const auto& texts : framings) {
    const Frames frames(texts);
    const auto reply = read_reply(frames.views);
    ASSERT_TRUE(reply) << texts.size();
    EXPECT_EQ(reply->sequence, 17U);
    EXPECT_EQ(text_of(reply->payload), "payload");
    EXPECT_FALSE(reply->end());
  }
}

TEST(Framing, AnEmptyPayloadEndsAReplay) {
  for (const auto& texts : {std::vector{""s, kEnd, ""s}, std::vector{""s, ""s, kEnd, ""s}}) {
    const auto reply = read_reply(Frames(texts).views);
    ASSERT_TRUE(reply);
    EXPECT_TRUE(reply->end());
  }
}

TEST(Framing, AnythingElseIsNoReply) {
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"payload"},
      {"", "", "", kSeventeen, "payload"},
      {"", "seventeen", "payload"},
      {"", "", ""},
      {"", kEnd, "payload"},
  };
  for (const auto& texts : wrong) EXPECT_FALSE(read_reply(Frames(texts).views)) << texts.size();
}

TEST(Framing, ARequestNamesTheFirstNumberInNetworkOrder) {
  const auto request = replay_request(0x0102030405060708);
  EXPECT_EQ(text_of(request), "\x01\x02\x03\x04\x05\x06\x07\x08");
  EXPECT_EQ(text_of(replay_request(17)), kSeventeen);
}

}  // namespace
}  // namespace baton::kvcache
