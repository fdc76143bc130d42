// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_structure.h"

#include "wire/json_object.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <simdjson.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

namespace baton::wire {
namespace {

// As simdjson finds the structure; false also where it finds none.
bool is_sure(std::string_view text) {
  simdjson::dom::parser parser;
  if (text.empty() || parser.allocate(text.size()) != simdjson::SUCCESS) return false;
  auto& found = *parser.implementation;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  if (found.stage1(bytes, text.size(), simdjson::stage1_mode::regular) != simdjson::SUCCESS)
    return false;
  return surely_valid(text, {found.structural_indexes.get(), found.n_structural_indexes});
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

// A string of plain text with something in it, at every distance from the window's borders.
std::string with_escape(std::size_t before, std::string_view escape, std::size_t behind) {
  return "{\"a\":\"" + std::string(before, 'x') + std::string(escape) + std::string(behind, 'y') +
         "\"}";
}

TEST(JsonStructure, IsSureOfWhatRequestsLookLike) {
  for (const std::string_view text : {
           R"({})",
           R"([])",
           R"( { "a" : [ ] , "b" : { } } )",
           R"({"a":1,"b":-0.5e+3,"c":true,"d":false,"e":null,"f":"x","g":[1,[2,{"h":"i"}],"j"]})",
           R"({"messages":[{"role":"user","content":"C:\\Users\\x \"quoted\"\n\t\/\b\f\r"}]})",
           R"({"a":"\u00e4\u4e2d\uD83D\uDE00\ud83d\ude00","\u0061":""})",
           R"([123456789012345678901234567890,1e999,0,-0])",
           "{\"a\":\n1\t,\r\"b\" :\"ä中😀\"}\n",
       }) {
    EXPECT_TRUE(is_sure(text)) << text;
  }
  EXPECT_TRUE(is_sure(nested(64)));
}

TEST(JsonStructure, IsNotSureOfWhatIsNotJson) {
  for (const std::string_view text : {
           R"(1)",
           R"("a")",
           R"({)",
           R"([)",
           R"([1)",
           R"([1,])",
           R"([,1])",
           R"([1 2])",
           R"([1}])",
           R"({"a"})",
           R"({"a":})",
           R"({"a":1,})",
           R"({"a":1 "b":2})",
           R"({"a" 1})",
           R"({1:2})",
           R"({"a":1]})",
           R"({}{})",
           R"({} 1)",
           R"({},)",
           R"([tru])",
           R"([truex])",
           R"([nul])",
           R"([01])",
           R"([1.])",
           R"([.5])",
           R"([1e])",
           R"([+1])",
           R"([1a])",
           R"([-])",
           R"(["a"b])",
           R"(["\x"])",
           R"(["\u12"])",
           R"(["\u12g4"])",
           R"(["\u+123"])",
           R"(["\ud83d"])",
           R"(["\ud83dx"])",
           R"(["\ud83d\u0041"])",
           R"(["\ude00"])",
           R"(["\\\x"])",
           R"(:)",
       }) {
    EXPECT_FALSE(is_sure(text)) << text;
  }
  EXPECT_FALSE(is_sure(nested(65))) << "valid, but too deep to be sure";
}

TEST(JsonStructure, ChecksEscapesWhereverTheyStand) {
  for (std::size_t before = 0; before < 140; ++before) {
    for (const std::size_t behind : {0UZ, 1UZ, 30UZ, 64UZ, 100UZ}) {
      EXPECT_TRUE(is_sure(with_escape(before, R"(\n)", behind)));
      EXPECT_TRUE(is_sure(with_escape(before, R"(\\\\x)", behind)));
      EXPECT_TRUE(is_sure(with_escape(before, R"(\\\")", behind)));
      EXPECT_TRUE(is_sure(with_escape(before, R"(\ud83d\ude00)", behind)));
      EXPECT_FALSE(is_sure(with_escape(before, R"(\x)", behind)));
      EXPECT_FALSE(is_sure(with_escape(before, R"(\\\x)", behind)));
      EXPECT_FALSE(is_sure(with_escape(before, R"(\ud83d\ude0)", behind)));
    }
  }
}

// Another parser is the judge of texts in which one byte is another, missing, or there twice.
TEST(JsonStructure, IsSureOfNothingThatAnotherParserRefuses) {
  const std::string_view sound =
      R"({"a":[1,-2.5e1,true,null],"b":{"c":"x\n\\\u00e4\ud83d\ude00"},"d":[],"e":[{},{"f":"g"}] })";
  ASSERT_TRUE(is_sure(sound));
  std::size_t sure = 0;
  const auto judge = [&](const std::string& text) {
    if (!is_sure(text)) return;
    ++sure;
    EXPECT_TRUE(nlohmann::json::accept(text)) << text;
  };
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string text(sound);
    judge(text.erase(at, 1));
    text = sound;
    judge(text.insert(at, 1, sound[at]));
    for (unsigned byte = 0; byte < 0x80; ++byte) {
      text = sound;
      text[at] = static_cast<char>(byte);
      judge(text);
    }
  }
  EXPECT_GT(sure, 1000U) << "letters and digits may be others";
}

TEST(JsonStructure, ReadsNothingBehindTheText) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const memory =
      ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  char* const border = static_cast<char*>(memory) + page;
  ASSERT_EQ(::mprotect(border, page, PROT_NONE), 0);
  for (std::size_t size = 0; size < 200; ++size) {
    const std::string text = with_escape(size / 2, R"(\n)", size - size / 2);
    char* const begin = border - text.size();
    std::memcpy(begin, text.data(), text.size());
    EXPECT_TRUE(JsonObject::parse({begin, text.size()}));
  }
  ::munmap(memory, 2 * page);
}

}  // namespace
}  // namespace baton::wire
