// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "prompt/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace baton::prompt {

// A tokenizer.json whose parts a test fills in; what it leaves out is null.
struct SmallFile {
  std::string model = {};
  std::string added_tokens = "[]";
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string post_processor = "null";
  std::string decoder = "null";

  std::string json() const {
    return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":)" + added_tokens +
           R"(,"normalizer":)" + normalizer + R"(,"pre_tokenizer":)" + pre_tokenizer +
           R"(,"post_processor":)" + post_processor + R"(,"decoder":)" + decoder + R"(,"model":)" +
           model + "}";
  }
};

inline std::shared_ptr<const Tokenizer> make(const SmallFile& file, std::string_view config = "") {
  auto made = Tokenizer::from_json(file.json(), config);
  if (!made) {
    ADD_FAILURE() << made.error().message();
    return nullptr;
  }
  return *made;
}

inline TokenIds ids_of(const Tokenizer& tokenizer, std::string_view text,
                       AddSpecial special = AddSpecial::No) {
  auto ids = tokenizer.encode(text, {.add_special = special});
  if (!ids) {
    ADD_FAILURE() << ids.error().message();
    return {};
  }
  return std::move(*ids);
}

// Characters a, b, c, d and merges: a+b (4) before b+c (5), then ab+c (6) and d+d (7).
inline constexpr std::string_view kLetters =
    R"({"type":"BPE","vocab":{"a":0,"b":1,"c":2,"d":3,"ab":4,"bc":5,"abc":6,"dd":7},)"
    R"("merges":["a b","b c","ab c","d d"]})";

// Every byte b is the token b in ByteLevel's alphabet; then "he" 256, "ll" 257, "hell" 258,
// "hello" 259, " h" 260.
inline std::string byte_level_model() {
  std::string vocabulary;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", visible ? byte : next++);
    vocabulary += '"' + std::string(escaped) + "\":" + std::to_string(byte) + ',';
  }
  return R"({"type":"BPE","vocab":{)" + vocabulary +
         R"("he":256,"ll":257,"hell":258,"hello":259,"\u0120h":260},)"
         R"("merges":["h e","l l","he ll","hell o",["\u0120","h"]]})";
}

inline constexpr std::string_view kByteLevel =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";

inline SmallFile byte_level_file() {
  return {.model = byte_level_model(),
          .added_tokens = R"([{"id":261,"content":"<|end|>","single_word":false,"lstrip":false,)"
                          R"("rstrip":false,"normalized":false,"special":true}])",
          .pre_tokenizer = std::string(kByteLevel),
          .decoder = R"({"type":"ByteLevel"})"};
}

}  // namespace baton::prompt
