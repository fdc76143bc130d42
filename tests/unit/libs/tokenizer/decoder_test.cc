// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/decoder.h"

#include "unit/libs/tokenizer/json_of.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {
namespace {

std::string decoded(std::string_view json, std::vector<std::string> tokens) {
  const auto decoder = Decoder::from_json(JsonOf(json));
  if (!decoder) {
    ADD_FAILURE() << decoder.error().message();
    return {};
  }
  (*decoder)->apply(tokens);
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

std::string decoder_refusal(std::string_view json) {
  const auto decoder = Decoder::from_json(JsonOf(json));
  return decoder ? "" : decoder.error().message();
}

TEST(Decoder, TurnsByteLevelTokensIntoBytes) {
  constexpr std::string_view kJson = R"({"type":"ByteLevel"})";
  // U+0120 is the space, U+00C3 and U+00A9 are themselves: the two bytes of é.
  EXPECT_EQ(decoded(kJson, {"Ġa", "Ã", "©"}), " aé");
  EXPECT_EQ(decoded(kJson, {"Ã", "b"}), "\uFFFDb");
  EXPECT_EQ(decoded(kJson, {"Ġ", "字"}), " 字") << "no token of the alphabet stays as it is";
}

TEST(Decoder, JoinsByteTokens) {
  constexpr std::string_view kJson = R"({"type":"ByteFallback"})";
  EXPECT_EQ(decoded(kJson, {"a", "<0xC3>", "<0xA9>", "b"}), "aéb");
  EXPECT_EQ(decoded(kJson, {"<0xC3>", "b"}), "\uFFFDb");
  EXPECT_EQ(decoded(kJson, {"<0xC3>", "<0xC3>"}), "\uFFFD\uFFFD") << "one for each byte";
  EXPECT_EQ(decoded(kJson, {"<0xZZ>", "<0x1>"}), "<0xZZ><0x1>");
}

TEST(Decoder, StripsUpToSoMany) {
  constexpr std::string_view kJson = R"({"type":"Strip","content":" ","start":1,"stop":2})";
  EXPECT_EQ(decoded(kJson, {"  a   ", "b"}), " a b");
}

TEST(Decoder, RunsItsStepsInOrder) {
  constexpr std::string_view kJson =
      R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},)"
      R"({"type":"ByteFallback"},{"type":"Fuse"},)"
      R"({"type":"Strip","content":" ","start":1,"stop":0}]})";
  EXPECT_EQ(decoded(kJson, {"▁a", "▁b▁", "<0x0A>"}), "a b \n");
}

TEST(Decoder, TakesTheFirstSpaceMarksOff) {
  EXPECT_EQ(
      decoded(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})", {"▁a▁", "▁b"}),
      "a b");
  EXPECT_EQ(
      decoded(R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"never"})", {"▁a", "▁b"}),
      " a b");
}

TEST(Decoder, JoinsWordPieces) {
  EXPECT_EQ(decoded(R"({"type":"WordPiece","prefix":"##","cleanup":true})",
                    {"it", "'s", "un", "##done", "!"}),
            "it's undone!");
  EXPECT_EQ(decoded(R"({"type":"WordPiece","prefix":"##","cleanup":false})", {"a", "!"}), "a !");
}

TEST(Decoder, TurnsWordEndsIntoSpaces) {
  EXPECT_EQ(decoded(R"({"type":"BPEDecoder","suffix":"</w>"})", {"he", "llo</w>", "you</w>"}),
            "hello you");
}

TEST(Decoder, FoldsWhatIsHeardTwice) {
  EXPECT_EQ(
      decoded(R"({"type":"CTC","pad_token":"<pad>","word_delimiter_token":"|","cleanup":true})",
              {"h", "h", "i", "<pad>", "i", "|", "y"}),
      "hii y");
}

TEST(Decoder, IsNoneWhereNoneIsAsked) {
  const auto decoder = Decoder::from_json(JsonOf("null"));
  ASSERT_TRUE(decoder);
  EXPECT_EQ(*decoder, nullptr);
}

TEST(Decoder, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(decoder_refusal(R"({"type":"Odd"})"), "the decoder \"Odd\" is not known to Baton");
  EXPECT_EQ(decoder_refusal(R"({"type":"Replace","pattern":{"Regex":"a"},"content":"b"})"),
            "decoder.pattern: \"Regex\" is not known to Baton");
  EXPECT_EQ(decoder_refusal(R"({"type":"Strip","content":" ","start":-1,"stop":0})"),
            "decoder: \"start\" is not a whole number that fits");
  EXPECT_EQ(decoder_refusal("[]"), "decoder is not an object");
}

TEST(Decoder, NamesMembersItDoesNotKnow) {
  EXPECT_EQ(decoder_refusal(R"({"type":"Strip","content":" ","start":1,"stop":0,"middle":1})"),
            "decoder: \"middle\" of Strip is not known to Baton");
  EXPECT_EQ(decoder_refusal(R"({"type":"Sequence","decoders":[{"type":"Fuse","odd":1}]})"),
            "decoder: \"odd\" of Fuse is not known to Baton");
  EXPECT_EQ(decoder_refusal(R"({"type":"Metaspace","replacement":"▁","str_rep":"▁",)"
                            R"("add_prefix_space":true,"prepend_scheme":"always","split":true})"),
            "");
}

TEST(Decoder, KnowsWhenBytesComeOutAsTheyWentIn) {
  const auto is_byte_level = [](std::string_view json) {
    return (*Decoder::from_json(JsonOf(json)))->byte_level();
  };
  EXPECT_TRUE(is_byte_level(R"({"type":"ByteLevel"})"));
  EXPECT_TRUE(is_byte_level(R"({"type":"Sequence","decoders":[{"type":"ByteLevel"}]})"));
  EXPECT_FALSE(is_byte_level(R"({"type":"Fuse"})"));
}

}  // namespace
}  // namespace baton::tokenizer
