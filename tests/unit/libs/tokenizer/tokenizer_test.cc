// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/tokenizer.h"

#include "unit/libs/tokenizer/small_tokenizers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace baton::tokenizer {
namespace {

TEST(Tokenizer, EncodesPieces) {
  const auto tokenizer = make(byte_level_file());
  EXPECT_EQ(ids_of(*tokenizer, "hello hello"), (TokenIds{259, ' ', 259}));
  EXPECT_EQ(ids_of(*tokenizer, "hello hi"), (TokenIds{259, 260, 'i'}));
  EXPECT_EQ(ids_of(*tokenizer, ""), TokenIds{});
}

TEST(Tokenizer, NormalizesEachPieceBetweenAddedTokens) {
  const auto tokenizer = make(byte_fallback_file());
  EXPECT_EQ(ids_of(*tokenizer, "ab a"), (TokenIds{4, 3}));
  EXPECT_EQ(ids_of(*tokenizer, "ab<s>a"), (TokenIds{4, 6, 3})) << "a prefix behind <s> as well";
  EXPECT_EQ(ids_of(*tokenizer, "<s>"), (TokenIds{6}));
  EXPECT_EQ(ids_of(*tokenizer, " a"), (TokenIds{0, 3})) << "▁ a is earlier than ▁ ▁";
}

TEST(Tokenizer, EncodesALongPieceAsAShortOne) {
  const auto tokenizer = make(byte_fallback_file());
  ASSERT_EQ(ids_of(*tokenizer, "ab a ab a"), (TokenIds{4, 3, 4, 3}));
  std::string text = "ab a";
  TokenIds expected = {4, 3};
  for (int i = 0; i < 10'000; ++i) {
    text += " ab a";
    expected.insert(expected.end(), {4, 3});
  }
  EXPECT_EQ(ids_of(*tokenizer, text), expected);
}

TEST(Tokenizer, TellsTheBeginningFromWhatFollowsAnAddedToken) {
  SmallFile file = byte_fallback_file();
  file.normalizer = "null";
  file.pre_tokenizer =
      R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false})";
  const auto tokenizer = make(file);
  EXPECT_EQ(ids_of(*tokenizer, "ab<s>ab"), (TokenIds{4, 6, 1, 2}));
  EXPECT_EQ(ids_of(*tokenizer, "<s>ab"), (TokenIds{6, 1, 2}));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const auto ids = make(byte_level_file())->encode("a\xC3", {});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code(), ErrorCode::InvalidText);
}

TEST(Tokenizer, StopsWhenAsked) {
  std::stop_source stop;
  stop.request_stop();
  const auto ids = make(byte_level_file())->encode("hello", {.stop = stop.get_token()});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code(), ErrorCode::Stopped);
}

// Stopped as soon as the first words of a text that would take seconds were looked up.
TEST(Tokenizer, StopsOnTheWayAndRemembersNothingHalf) {
  const auto tokenizer = make(byte_level_file());
  std::mt19937_64 random(5);
  std::string text(std::size_t{32} << 20, ' ');
  for (std::size_t at = 0; at + 8 <= text.size(); at += 8) {
    const std::uint64_t letters = random();
    for (unsigned i = 0; i < 7; ++i)
      text[at + i] = static_cast<char>('a' + (letters >> 8 * i) % 16);
  }
  SegmentCache cache(std::size_t{64} << 20);
  std::stop_source stop;
  std::jthread stopper([&](const std::stop_token& over) {
    while (cache.stats().misses < 3 && !over.stop_requested()) std::this_thread::yield();
    stop.request_stop();
  });
  const auto ids = tokenizer->encode(
      text, {.cache = &cache, .stop = stop.get_token(), .give_way = GiveWay::Yes});
  ASSERT_FALSE(ids);
  EXPECT_EQ(ids.error().code(), ErrorCode::Stopped);

  const std::string_view beginning = std::string_view(text).substr(0, std::size_t{256} << 10);
  const auto again = tokenizer->encode(beginning, {.add_special = AddSpecial::No, .cache = &cache});
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, ids_of(*tokenizer, beginning));
}

TEST(Tokenizer, DecodesAsTheFileSays) {
  const auto marks = make(byte_fallback_file());
  EXPECT_EQ(marks->decode(TokenIds{6, 4, 3}, SkipSpecial::No), "<s> ab a");
  EXPECT_EQ(marks->decode(TokenIds{6, 4, 3}, SkipSpecial::Yes), "ab a");
  EXPECT_EQ(marks->decode(TokenIds{4, 999, 3}, SkipSpecial::No), "ab a") << "no such id";
  SmallFile without = byte_fallback_file();
  without.decoder = "null";
  EXPECT_EQ(make(without)->decode(TokenIds{1, 2}, SkipSpecial::No), "a b");
}

TEST(Tokenizer, ShowsTokensAsTheFileWritesThem) {
  const auto tokenizer = make(byte_level_file());
  EXPECT_EQ(tokenizer->token(260), "Ġh");
  EXPECT_EQ(tokenizer->id("Ġh"), 260U);
  EXPECT_EQ(tokenizer->token(261), "<|end|>");
  EXPECT_EQ(tokenizer->id("<|end|>"), 261U);
  EXPECT_EQ(tokenizer->token(262), std::nullopt);
  EXPECT_EQ(tokenizer->id("nothing"), std::nullopt);
  EXPECT_EQ(tokenizer->vocabulary_size(), 262U);
}

TEST(Tokenizer, GivesBytesBackAsTheyCame) {
  const auto tokenizer = make(byte_level_file());
  ASSERT_TRUE(tokenizer->byte_level());
  EXPECT_FALSE(make(byte_fallback_file())->byte_level());
  EXPECT_FALSE(make(file_with_looking_tokens())->byte_level()) << "white space is lost";
  std::mt19937 random(5);
  const std::vector<std::string> pieces = {"hello", " ",       "\n", "é", "字",
                                           "😀",    "<|end|>", "\0", "12"};
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (std::size_t length = random() % 20; length > 0; --length) {
      text += pieces[random() % pieces.size()];
    }
    EXPECT_EQ(tokenizer->decode(ids_of(*tokenizer, text), SkipSpecial::No), text);
  }
}

TEST(Tokenizer, FindsNormalizedTokensInNormalizedText) {
  SmallFile file{.model = std::string(kLetters),
                 .added_tokens = R"([{"id":8,"content":"DB","single_word":false,"lstrip":false,)"
                                 R"("rstrip":false,"normalized":true,"special":false}])",
                 .normalizer = R"({"type":"Lowercase"})"};
  EXPECT_EQ(ids_of(*make(file), "aDbc dB"), (TokenIds{0, 8, 2, 8}));
}

TEST(Tokenizer, WritesPiecesInTheAlphabetForAModelThatWantsThem) {
  SmallFile file = byte_level_file();
  file.added_tokens = "[]";
  file.model = R"({"type":"WordLevel","unk_token":"?","vocab":{"?":0,"hello":1,"Ġhello":2}})";
  EXPECT_EQ(ids_of(*make(file), "hello hello you"), (TokenIds{1, 2, 0}));
}

// Turn after turn of one conversation, with a cache that has to forget: exact to the token.
TEST(Tokenizer, GivesTheSameTokensFromTheCache) {
  std::mt19937 random(9);
  for (const SmallFile& file : {byte_level_file(), byte_fallback_file()}) {
    const auto tokenizer = make(file);
    SegmentCache cache(4000);
    const std::string_view border = tokenizer->byte_level() ? "<|end|>" : "<s>";
    for (int conversation = 0; conversation < 20; ++conversation) {
      std::string text;
      for (int turn = 0; turn < 10; ++turn) {
        for (std::size_t length = random() % 150; length > 0; --length) {
          text.push_back("ab hello\n"[random() % 9]);
        }
        text += random() % 4 == 0 ? std::string(200, 'a') : "";
        text += border;
        const auto ids = tokenizer->encode(text, {.add_special = AddSpecial::No, .cache = &cache});
        ASSERT_TRUE(ids);
        ASSERT_EQ(*ids, ids_of(*tokenizer, text));
      }
    }
    EXPECT_GT(cache.stats().hits, 100U);
  }
}

// Conversations of short and long messages that lose their beginning, get another one, or have
// something put in front of their last message.
TEST(Tokenizer, GivesTheSameTokensFromTheCacheWhateverComesBefore) {
  std::mt19937 random(11);
  const auto message = [&] {
    std::string text;
    for (std::size_t words = random() % 300; words > 0; --words) {
      constexpr std::string_view kWords[] = {"hello", " hello", " he",     "hell", "\n", "\n\n",
                                             "\t",    " x",     "\nhello", ".\n",  "'s", "<|end",
                                             "a",     "12",     " ",       "   ",  "a ", "\r\n"};
      constexpr std::string_view kTokens[] = {"\t\t", "<|end|>", "<user>"};
      text += random() % 100 == 0 ? kTokens[random() % std::size(kTokens)]
                                  : kWords[random() % std::size(kWords)];
    }
    return text;
  };
  const auto tokenizer = make(file_with_words());
  SegmentCache cache(1 << 20);
  for (int conversation = 0; conversation < 30; ++conversation) {
    std::vector<std::string> said;
    for (int turn = 0; turn < 12; ++turn) {
      said.push_back(message());
      if (said.size() > 1 && random() % 5 == 0) said.erase(said.begin());
      if (random() % 5 == 0) said.front() = message();
      std::string text;
      for (const std::string& one : said) {
        if (&one == &said.back()) text += said.front() + "\n\n";
        text += one + (random() % 2 == 0 ? "<|end|>" : "<user>");
      }
      const auto ids = tokenizer->encode(text, {.add_special = AddSpecial::No, .cache = &cache});
      ASSERT_TRUE(ids);
      ASSERT_EQ(*ids, ids_of(*tokenizer, text)) << text;
    }
  }
  const auto stats = cache.stats();
  EXPECT_GT(stats.hits, stats.misses / 2);
}

// What a template puts in front of the last message must not cost the rest of it.
TEST(Tokenizer, FindsWordsAgainBehindAnotherBeginning) {
  const auto tokenizer = make(file_with_words());
  SegmentCache cache(1 << 20);
  std::string text;
  for (std::size_t word = 0; word < 800; ++word) {
    text += std::to_string(word * 7919) + std::string(1 + word % 5, 'h') + " hello ";
  }
  const auto encode = [&](const std::string& what) {
    ASSERT_TRUE(tokenizer->encode(what, {.cache = &cache}));
  };
  encode(text);
  EXPECT_EQ(cache.stats().hits, 0U);
  encode("other words" + text);
  EXPECT_GT(cache.stats().hit_bytes, text.size() / 2);
}

// A token that is looked for in normalized text ends a stretch too, where nothing is normalized.
TEST(Tokenizer, FindsAMessageAgainBeforeATokenThatIsNotSpecial) {
  SmallFile file = byte_level_file();
  file.added_tokens = R"([{"id":261,"content":"<answer>","single_word":false,"lstrip":false,)"
                      R"("rstrip":false,"normalized":true,"special":false}])";
  const auto tokenizer = make(file);
  SegmentCache cache(1 << 20);
  std::string text;
  for (int word = 0; word < 100; ++word) text += " hello" + std::to_string(word);
  text += "<answer>";
  ASSERT_TRUE(tokenizer->encode(text, {.cache = &cache}));
  const std::string longer = text + " he";
  const auto ids = tokenizer->encode(longer, {.add_special = AddSpecial::No, .cache = &cache});
  ASSERT_TRUE(ids);
  EXPECT_EQ(*ids, ids_of(*tokenizer, longer));
  EXPECT_EQ(cache.stats().hit_bytes, text.size());
}

// What was followed by one thing is followed by another, which makes a longer token of its end.
TEST(Tokenizer, IsExactWhereATokenReachesOverTheEndOfAnother) {
  std::mt19937 random(12);
  SmallFile file = byte_level_file();
  file.added_tokens =
      "[" + added_token(261, "<|end|>", "") + "," + added_token(262, "<|end|>a", "normalized") +
      "," + added_token(263, "a<user>b", "") + "," + added_token(264, "<user>", "normalized") +
      "," + added_token(265, ">he", "") + "," + added_token(266, "[x]", "normalized") + "]";
  const auto tokenizer = make(file);
  const std::string long_text(80, 'x');
  const std::string pieces[] = {"<|end|>", "<user>", "[x]",     "a",       "b",
                                "hello",   " he",    long_text, long_text, long_text};
  SegmentCache cache(1 << 20);
  std::string text;
  for (int turn = 0; turn < 3000; ++turn) {
    if (turn % 12 == 0) text = long_text + "[x]";
    for (int piece = 0; piece < 4; ++piece) text += pieces[random() % std::size(pieces)];
    const auto ids = tokenizer->encode(text, {.add_special = AddSpecial::No, .cache = &cache});
    ASSERT_TRUE(ids);
    ASSERT_EQ(*ids, ids_of(*tokenizer, text)) << text;
  }
  EXPECT_GT(cache.stats().hits, 3000U);
}

// Tokens that take white space along or look at what is next to them, with and without one that is
// made of white space.
TEST(Tokenizer, IsExactWhereTokensLookAround) {
  const std::string_view words[] = {"<|end|>", "<user>", "<x>", "cat", "<a>", "<b>",
                                    "tag_",    "<c>",    "z ",  " ",   "\n",  "  ",
                                    "\u00A0",  "hello",  " he", "s",   "\t",  "x"};
  for (const bool with_space : {false, true}) {
    SmallFile file = file_with_looking_tokens();
    if (with_space) file.added_tokens.insert(1, added_token(270, "\\n", "") + ",");
    const auto tokenizer = make(file);
    const std::string long_text(130, 'y');
    std::mt19937 random(13);
    SegmentCache cache(1 << 20);
    std::string text;
    for (int turn = 0; turn < 6000; ++turn) {
      if (turn % 12 == 0) text.clear();
      for (std::size_t piece = random() % 6; piece > 0; --piece) {
        text += random() % 4 == 0 ? long_text : words[random() % std::size(words)];
      }
      const auto ids = tokenizer->encode(text, {.add_special = AddSpecial::No, .cache = &cache});
      ASSERT_TRUE(ids);
      ASSERT_EQ(*ids, ids_of(*tokenizer, text)) << text;
    }
    EXPECT_GT(cache.stats().hits, 3000U);
  }
}

// Tokens that are looked for first may take one that is looked for later, or part of it, and whether
// they do depends on what follows.
TEST(Tokenizer, IsExactWhereATokenComesAndGoesWithWhatFollows) {
  const std::string long_text(130, 'y');
  SmallFile file = byte_level_file();
  file.added_tokens = "[" + added_token(261, "<x>\\n", "normalized") + "," +
                      added_token(262, "<r>", "lstrip") + "]";
  SmallFile other = byte_level_file();
  other.added_tokens = "[" + added_token(261, "<|x|>", "normalized") + "," +
                       added_token(262, "foo<|x|>", "single_word") + "]";
  const auto check = [&](const SmallFile& tokens, std::string_view begin) {
    const auto tokenizer = make(tokens);
    SegmentCache cache(1 << 20);
    for (const std::string_view end : {"hello", "<r>", " ", "\n<r>", "!"}) {
      const std::string half = long_text + std::string(begin);
      const std::string text = half + "z" + half + std::string(end);
      const auto ids = tokenizer->encode(text, {.add_special = AddSpecial::No, .cache = &cache});
      ASSERT_TRUE(ids);
      EXPECT_EQ(*ids, ids_of(*tokenizer, text)) << text;
    }
  };
  check(file, "<x>\n");
  check(other, " foo<|x|>");
}

// As Phi-3 has them: every token of a template takes the line end behind it along.
TEST(Tokenizer, FindsMessagesAgainBetweenTokensThatTakeWhiteSpaceAlong) {
  SmallFile file = byte_level_file();
  file.added_tokens = "[" + added_token(261, "<|end|>", "rstrip") + "," +
                      added_token(262, "<|user|>", "rstrip") + "]";
  const auto tokenizer = make(file);
  SegmentCache cache(1 << 20);
  std::string text;
  std::size_t before = 0;
  for (int turn = 0; turn < 10; ++turn) {
    before = text.size();
    text += "<|user|>\n";
    for (int word = 0; word < 60; ++word) text += " he" + std::to_string(turn * 100 + word);
    text += "<|end|>\n";
    const std::uint64_t known = cache.stats().hit_bytes;
    const auto ids = tokenizer->encode(text, {.add_special = AddSpecial::No, .cache = &cache});
    ASSERT_TRUE(ids);
    EXPECT_EQ(*ids, ids_of(*tokenizer, text));
    EXPECT_EQ(cache.stats().hit_bytes - known, before) << "all that was said before";
  }
}

TEST(Tokenizer, CanBeUsedByThreadsAtOnce) {
  const auto tokenizer = make(byte_fallback_file());
  std::string text;
  for (int at = 0; at < 200; ++at) text += at % 3 == 0 ? "ab " : "a b";
  const TokenIds expected = ids_of(*make(byte_fallback_file()), text);
  std::vector<std::jthread> threads;
  for (int at = 0; at < 4; ++at) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) EXPECT_EQ(ids_of(*tokenizer, text), expected);
    });
  }
}

}  // namespace
}  // namespace baton::tokenizer
