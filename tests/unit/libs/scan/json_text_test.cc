// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/scan/json_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <string_view>

namespace baton::scan {
namespace {

// What a parser that people trust says.
std::string meaning_of(const std::string& raw) {
  return nlohmann::json::parse('"' + raw + '"').get<std::string>();
}

// Strings of any length up to some windows of text, with escapes next to each other and far apart.
class RandomString {
 public:
  std::string next() {
    static constexpr auto kEscapes = std::to_array<std::string_view>(
        {"\\n", "\\\"", "\\\\", "\\/", "\\b", "\\f", "\\r", "\\t", "\\u0041", "\\u00e9", "\\u20aC",
         "\\uD83d\\ude00", "\\\\n", "\\\\\\\"", "\\u000a"});
    std::string raw;
    const std::size_t length = random_() % 400;
    const std::size_t apart = 1 + random_() % 90;
    while (raw.size() < length) {
      if (random_() % apart == 0) {
        raw += kEscapes[random_() % kEscapes.size()];
      } else {
        raw += random_() % 50 == 0 ? "漢" : "x";
      }
    }
    return raw;
  }

 private:
  std::mt19937 random_{5};
};

TEST(JsonText, UnescapesWhatStandsBetweenQuotes) {
  RandomString strings;
  for (int i = 0; i < 20'000; ++i) {
    const std::string raw = strings.next();
    ASSERT_EQ(unescape(raw), meaning_of(raw)) << raw;
  }
}

TEST(JsonText, TakesHalvesOfACharacterForAReplacement) {
  for (std::size_t size = 0; size < 200; ++size) {
    const std::string before(size, 'x');
    EXPECT_EQ(unescape(before + "\\ud83d"), before + "\uFFFD");
    EXPECT_EQ(unescape(before + "\\ude00!"), before + "\uFFFD!");
    EXPECT_EQ(unescape(before + "\\ud83d\\n"), before + "\uFFFD\n");
    EXPECT_EQ(unescape(before + "\\ud83d\\u0041"), before + "\uFFFDA");
    EXPECT_EQ(unescape(before + "\\ude00" + before), before + "\uFFFD" + before);
  }
}

// With no more room than it asks for, nothing to read behind the text, and much or little text behind
// the quote.
TEST(JsonText, UnescapesUpToTheQuote) {
  RandomString strings;
  for (int i = 0; i < 5'000; ++i) {
    const std::string raw = strings.next();
    const std::string behind(static_cast<std::size_t>(i) % 150, 'z');
    const std::string whole = R"({"a":")" + raw + '"' + behind;
    const std::size_t begin = 6;
    const auto memory = std::make_unique<char[]>(whole.size());
    whole.copy(memory.get(), whole.size());
    const std::string_view text(memory.get(), whole.size());
    const auto room = std::make_unique<char[]>(text.size() - begin);
    std::size_t at = begin;
    char* const end = unescape_to(room.get(), text, at);
    ASSERT_EQ(std::string(room.get(), end), meaning_of(raw)) << text;
    ASSERT_EQ(at, text.size() - behind.size()) << text;
  }
}

}  // namespace
}  // namespace baton::scan
