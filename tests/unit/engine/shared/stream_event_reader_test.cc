// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "engine/shared/stream_event_reader.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace baton::engine {
namespace {

using Kind = StreamEvent::Kind;

std::string chat_event(std::string_view text) {
  return R"({"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":")" + std::string(text) +
         R"("},"logprobs":null,"finish_reason":null}]})";
}

void expect_as_parsed(StreamEventReader& reader, const std::string& data) {
  const StreamEvent read = reader.read(data);
  const StreamEvent parsed = read_stream_event(data);
  ASSERT_EQ(read.kind, parsed.kind) << data;
  ASSERT_EQ(read.has_token, parsed.has_token) << data;
  ASSERT_EQ(read.has_finish, parsed.has_finish) << data;
  ASSERT_EQ(read.usage.has_value(), parsed.usage.has_value()) << data;
  if (read.usage) {
    ASSERT_EQ(read.usage->completion_tokens, parsed.usage->completion_tokens) << data;
  }
}

TEST(StreamEventReader, ReadsTextsOfAnyKindBehindAnEventThatItKnows) {
  const std::array<std::string, 22> texts{"x",
                                          "",
                                          " of the sea and of the ships that sail on it",
                                          "\\n",
                                          R"(a \" and a \\ and a \/)",
                                          "\\",
                                          R"(sixteen bytes..\)",
                                          "\\u00e9",
                                          R"(\ud83d\ude00)",
                                          R"(\ud83d)",
                                          R"(\x)",
                                          "\n",
                                          std::string(1, '\0'),
                                          "\x7f",
                                          "h\xc3\xa9",
                                          "h\xc3",
                                          "\xff",
                                          "\xed\xa0\x80",
                                          R"("},"finish_reason":"abort","x":{"y":")",
                                          R"("}}],"error":{"message":")",
                                          std::string(70'000, 'a'),
                                          std::string(40, ' ') + "\xe6\xb5\xb7\xe3\x81\xae"};
  for (const std::string& text : texts) {
    StreamEventReader reader;
    expect_as_parsed(reader, chat_event("known"));
    expect_as_parsed(reader, chat_event(text));
    expect_as_parsed(reader, chat_event("known"));
  }
}

TEST(StreamEventReader, ReadsCompletions) {
  StreamEventReader reader;
  for (const char* data : {R"({"choices":[{"text":"a","finish_reason":null}]})",
                           R"({"choices":[{"text":"b","finish_reason":null}]})",
                           R"({"choices":[{"text":"","finish_reason":null}]})",
                           R"({"choices":[{"text":"b","finish_reason":"stop"}]})",
                           R"({"choices":[],"usage":{"completion_tokens":7}})", "[DONE]"}) {
    expect_as_parsed(reader, data);
  }
}

TEST(StreamEventReader, IsNotDeceivedByKeysThatComeTwice) {
  StreamEventReader reader;
  for (const char* data :
       {R"({"choices":[{"delta":{"content":"","content":"a"}}],"choices":[{"text":"b"}]})",
        R"({"choices":[{"delta":{"content":"","content":"a"}}],"choices":[{"text":""}]})",
        R"({"choices":[{"delta":{"content":"a","content":""}}]})",
        R"({"choices":[{"delta":{"content":"","content":""}}]})"}) {
    expect_as_parsed(reader, data);
    expect_as_parsed(reader, data);
  }
}

TEST(StreamEventReader, GoesOnWhereEveryEventIsAnother) {
  StreamEventReader reader;
  for (int i = 0; i < 300; ++i) {
    const std::string number = std::to_string(i);
    expect_as_parsed(reader, R"({"n":)" + number + R"(,"choices":[{"text":"t)" + number + "\"}]}");
  }
  expect_as_parsed(reader, R"({"choices":[{"text":"a"}]})");
}

// Each byte of an event that is like a known one is changed, taken away or doubled.
TEST(StreamEventReader, ReadsDamagedEventsAsTheParserDoes) {
  std::mt19937 random(7);  // NOLINT: the same every time
  const std::string known = chat_event("abc");
  constexpr std::string_view kBytes = "\"\\{}[]:,nu0\x01\xc3\xa9 ex\n";
  for (std::size_t at = 0; at < known.size(); ++at) {
    for (const std::string_view text : {"abc", "d", "a longer text than it was before, and \\n"}) {
      std::string damaged = chat_event(text);
      if (at >= damaged.size()) continue;
      std::vector<std::string> all(3, damaged);
      all[0][at] = kBytes[random() % kBytes.size()];
      all[1].erase(at, 1);
      all[2].insert(at, 1, all[2][at]);
      for (const std::string& one : all) {
        StreamEventReader reader;
        expect_as_parsed(reader, known);
        expect_as_parsed(reader, one);
      }
    }
  }
}

}  // namespace
}  // namespace baton::engine
