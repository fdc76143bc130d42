// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/text/precompiled_normalizer.h"

#include "libs/base64/base64.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace baton::tokenizer {
namespace {

// A Darts double array in which each node has a block of 256 places for its children.
class Table {
 public:
  Table() { units_.resize(2 * kBlock); }

  void add(std::string_view key, std::string_view replacement) {
    std::size_t node = 0;
    for (const char byte : key) {
      node = child(node, static_cast<std::uint8_t>(byte));
    }
    const std::size_t leaf = block_of(node);
    units_[node] |= 1U << 8;
    units_[leaf] = 1U << 31 | static_cast<std::uint32_t>(replacements_.size());
    replacements_.append(replacement).push_back('\0');
  }

  std::string as_base64() const {
    const auto size = static_cast<std::uint32_t>(units_.size() * sizeof units_[0]);
    std::string bytes(sizeof size + size, '\0');
    std::memcpy(bytes.data(), &size, sizeof size);
    std::memcpy(bytes.data() + sizeof size, units_.data(), size);
    return base64::encode(bytes + replacements_);
  }

 private:
  static constexpr std::size_t kBlock = 256;

  // Where the children of a node are; labels are added by exclusive or.
  std::size_t block_of(std::size_t node) {
    const auto [known, is_new] = blocks_.emplace(node, next_block_);
    if (is_new) {
      ++next_block_;
      units_.resize((next_block_ + 1) * kBlock);
      units_[node] |= static_cast<std::uint32_t>((known->second * kBlock) ^ node) << 10;
    }
    return known->second * kBlock;
  }

  std::size_t child(std::size_t node, std::uint8_t label) {
    const std::size_t place = block_of(node) ^ label;
    units_[place] |= label;
    return place;
  }

  std::vector<std::uint32_t> units_;
  std::map<std::size_t, std::size_t> blocks_;
  std::size_t next_block_ = 1;
  std::string replacements_;
};

std::string normalized(const Table& table, std::string_view text) {
  const auto normalizer = PrecompiledNormalizer::from_base64(table.as_base64());
  if (!normalizer) {
    return "refused: " + normalizer.error().message();
  }
  std::string buffer;
  return std::string((*normalizer)->apply(text, buffer));
}

// Expected texts are answers of the Hugging Face tokenizers 0.23.

TEST(PrecompiledNormalizer, ReplacesCharacters) {
  Table table;
  table.add("ﬁ", "fi");
  table.add("①", "1");
  table.add("a", "");
  EXPECT_EQ(normalized(table, "ﬁx①a"), "fix1");
  EXPECT_EQ(normalized(table, "none"), "none");
}

TEST(PrecompiledNormalizer, ReplacesShortGraphemes) {
  Table table;
  table.add("e\u0301", "é");
  EXPECT_EQ(normalized(table, "e\u0301b"), "éb");
  EXPECT_EQ(normalized(table, "e\u0301\u0302\u0303b"), "e\u0301\u0302\u0303b");
}

// The shortest prefix decides, and the rest of the grapheme is lost.
TEST(PrecompiledNormalizer, GoesByTheShortestPrefix) {
  Table table;
  table.add("a", "X");
  table.add("a\u0301", "Z");
  table.add("ab", "Y");
  EXPECT_EQ(normalized(table, "a\u0301b"), "Xb");
  EXPECT_EQ(normalized(table, "abca"), "XbcX");
}

TEST(PrecompiledNormalizer, LeavesTextAloneThatStaysAsItIs) {
  Table table;
  table.add("ﬁ", "fi");
  const auto normalizer = PrecompiledNormalizer::from_base64(table.as_base64());
  ASSERT_TRUE(normalizer);
  const std::string_view text = "plain é\r\n text";
  std::string buffer = "kept";
  EXPECT_EQ((*normalizer)->apply(text, buffer).data(), text.data());
  EXPECT_EQ(buffer, "kept");
}

TEST(PrecompiledNormalizer, RefusesBrokenTables) {
  using namespace std::string_view_literals;
  for (const std::string_view bytes :
       {""sv, "\1\0\0"sv, "\x08\0\0\0abcd"sv, "\0\0\0\0abc"sv, "\4\0\0\0abcd\xFF"sv}) {
    EXPECT_FALSE(PrecompiledNormalizer::from_base64(base64::encode(bytes)));
  }
  EXPECT_FALSE(PrecompiledNormalizer::from_base64("?"));
}

TEST(PrecompiledNormalizer, StaysInsideItsTable) {
  // Any offset, any leaf: whatever it leads to, nothing is read that is not there.
  std::string bytes("\x10\0\0\0", 4);
  for (int i = 0; i < 16; ++i) {
    bytes += '\xFF';
  }
  bytes += "é";
  const auto normalizer = PrecompiledNormalizer::from_base64(base64::encode(bytes));
  ASSERT_TRUE(normalizer);
  std::string buffer;
  EXPECT_EQ((*normalizer)->apply("abcé", buffer), "abcé");
}

}  // namespace
}  // namespace baton::tokenizer
