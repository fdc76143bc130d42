// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "fuzz/fuzz_input.h"
#include "libs/tokenizer/tokenizer.h"
#include "unit/libs/tokenizer/small_models.h"

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace baton;
using fuzz::require;

std::vector<std::shared_ptr<const tokenizer::Tokenizer>> make_tokenizers() {
  std::vector<std::shared_ptr<const tokenizer::Tokenizer>> made;
  for (const tokenizer::SmallFile& file :
       {tokenizer::byte_level_file(), tokenizer::byte_fallback_file(), tokenizer::word_piece_file(),
        tokenizer::unigram_file(), tokenizer::file_with_words(),
        tokenizer::file_with_looking_tokens()}) {
    auto tokenizer = tokenizer::Tokenizer::from_json(file.json(), "");
    require(tokenizer.has_value(), "a small tokenizer loads");
    made.push_back(std::move(*tokenizer));
  }
  return made;
}

// The first half, up to a character's end.
std::string_view beginning_of(std::string_view text) {
  std::size_t end = text.size() / 2;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kTokenizers = make_tokenizers();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool valid = simdjson::validate_utf8(text.data(), text.size());
  for (const auto& tokenizer : kTokenizers) {
    tokenizer::SegmentCache cache(1 << 16);
    const auto ids = tokenizer->encode(text, {});
    require(ids.has_value() == valid, "UTF-8 is encoded, and nothing else");
    if (!ids) continue;
    require(tokenizer->encode(beginning_of(text), {.cache = &cache}).has_value(), "so is its half");
    for (int round = 0; round < 2; ++round) {
      const auto again = tokenizer->encode(text, {.cache = &cache});
      require(again && *again == *ids, "a cache changes nothing");
    }
    const std::string decoded = tokenizer->decode(*ids, tokenizer::SkipSpecial::No);
    require(!tokenizer->byte_level() || decoded == text, "bytes come back as they went in");
    require(simdjson::validate_utf8(decoded.data(), decoded.size()), "what is decoded is UTF-8");
  }
  return 0;
}
