// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace baton::tokenizer {

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

// A token of a file, with those of its flags that are named.
inline std::string added_token(int id, std::string_view content, std::string_view flags) {
  std::string token =
      R"({"id":)" + std::to_string(id) + R"(,"content":")" + std::string(content) + '"';
  for (const std::string_view flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
    token.append(R"(,")").append(flag).append(flags.contains(flag) ? R"(":true)" : R"(":false)");
  }
  return token + "}";
}

// A byte-level file that is cut between words, with a token that is made of white space and one that
// another one begins with. Two spaces of one piece are a token, too.
inline SmallFile file_with_words() {
  SmallFile file = byte_level_file();
  const auto replace = [&](std::string_view old, std::string_view with) {
    file.model.replace(file.model.find(old), old.size(), with);
  };
  replace(R"("\u0120h":260)", R"("\u0120h":260,"\u0120\u0120":261)");
  replace(R"(["\u0120","h"])", R"(["\u0120","h"],["\u0120","\u0120"])");
  file.added_tokens = "[" + added_token(262, "<|end|>", "special") + "," +
                      added_token(263, "<|end|>a", "special") + "," +
                      added_token(264, "\\t\\t", "") + "," + added_token(265, "<user>", "") + "]";
  file.pre_tokenizer =
      R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)"
      R"("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|)"
      R"( ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"},)"
      R"("behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,)"
      R"("trim_offsets":true,"use_regex":false}]})";
  return file;
}

// Tokens that take white space along or look at what is next to them.
inline SmallFile file_with_looking_tokens() {
  SmallFile file = byte_level_file();
  file.added_tokens =
      "[" + added_token(261, "<|end|>", "rstrip") + "," +
      added_token(262, "<user>", "lstrip rstrip") + "," + added_token(263, "<x>", "lstrip") + "," +
      added_token(264, "cat", "single_word") + "," + added_token(265, "<a>", "") + "," +
      added_token(266, "<b>", "normalized rstrip") + "," + added_token(267, "tag_", "") + "," +
      added_token(268, "<c>", "single_word") + "," + added_token(269, "z ", "") + "]";
  return file;
}

// Llama 2's shape: the space mark before everything and for every space, no pre-tokenizer, bytes
// for what is not known. "▁" 0, "a" 1, "b" 2, "▁a" 3, "▁ab" 4, "▁▁" 5, "<s>" 6, byte b is 7 + b.
inline SmallFile byte_fallback_file() {
  std::string bytes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", byte);
    bytes += ",\"" + std::string(name) + "\":" + std::to_string(7 + byte);
  }
  return {.model = R"({"type":"BPE","byte_fallback":true,"fuse_unk":true,"vocab":{"▁":0,"a":1,)"
                   R"("b":2,"▁a":3,"▁ab":4,"▁▁":5,"<s>":6)" +
                   bytes + R"(},"merges":["▁ a","▁a b","▁ ▁"]})",
          .added_tokens = R"([{"id":6,"content":"<s>","single_word":false,"lstrip":false,)"
                          R"("rstrip":false,"normalized":false,"special":true}])",
          .normalizer = R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},)"
                        R"({"type":"Replace","pattern":{"String":" "},"content":"▁"}]})",
          .decoder = R"({"type":"Sequence","decoders":[{"type":"Replace",)"
                     R"("pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},)"
                     R"({"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})"};
}

inline SmallFile word_piece_file() {
  return {.model = R"({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
                   R"("max_input_chars_per_word":20,"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"un":3,)"
                   R"("##able":4,"##a":5,"a":6,"!":7}})",
          .added_tokens = R"([{"id":1,"content":"[CLS]","single_word":true,"lstrip":true,)"
                          R"("rstrip":true,"normalized":true,"special":true}])",
          .normalizer = R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,)"
                        R"("strip_accents":null,"lowercase":true})",
          .pre_tokenizer = R"({"type":"BertPreTokenizer"})",
          .post_processor = R"({"type":"BertProcessing","sep":["[SEP]",2],"cls":["[CLS]",1]})",
          .decoder = R"({"type":"WordPiece","prefix":"##","cleanup":true})"};
}

inline SmallFile unigram_file() {
  return {.model = R"({"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁",-2],["a",-1],)"
                   R"(["▁a",-2.5],["ab",-3],["b",-1.5],["é",-4]]})",
          .pre_tokenizer = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first",)"
                           R"("split":true})",
          .decoder = R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"first",)"
                     R"("split":true})"};
}

}  // namespace baton::tokenizer
