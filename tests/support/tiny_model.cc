// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "support/tiny_model.h"

#include <nlohmann/json.hpp>

namespace baton::test {
namespace {

// A code point below U+0800 as UTF-8.
std::string utf8(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// How ByteLevel writes a byte: itself where it is printable Latin-1, else the next free code point
// from U+0100 on.
std::string byte_level(unsigned byte) {
  const auto printable = [](unsigned b) {
    return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
  };
  if (printable(byte)) return utf8(byte);
  unsigned next = 0x100;
  for (unsigned b = 0; b < byte; ++b) next += printable(b) ? 0 : 1;
  return utf8(next);
}

nlohmann::json tokenizer() {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (unsigned byte = 0; byte < 256; ++byte) vocabulary[byte_level(byte)] = byte;
  vocabulary["hi"] = 256;
  nlohmann::json added = nlohmann::json::array();
  int id = 257;
  for (const char* content : {"<|user|>", "<|assistant|>", "<|end|>", "<s>"}) {
    added.push_back({{"id", id++},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  using Json = nlohmann::json;
  const Json bos = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer",
           {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", true}}},
          {"post_processor",
           {{"type", "TemplateProcessing"},
            {"single", Json::array({bos, text})},
            {"pair", Json::array({bos, text, text})},
            {"special_tokens",
             {{"<s>",
               {{"id", "<s>"}, {"ids", Json::array({260})}, {"tokens", Json::array({"<s>"})}}}}}}},
          {"decoder",
           {{"type", "ByteLevel"},
            {"add_prefix_space", true},
            {"trim_offsets", true},
            {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"vocab", vocabulary},
            {"merges", Json::array({"h i"})}}}};
}

constexpr const char* kTemplate =
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'broken' %}{{ raise_exception('no such role here') }}{% endif %}"
    "<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}";

}  // namespace

TinyModel::TinyModel() {
  write("tokenizer.json", tokenizer().dump());
  const nlohmann::json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                 {"bos_token", "<s>"},
                                 {"eos_token", "<|end|>"},
                                 {"model_max_length", 4096},
                                 {"chat_template", kTemplate}};
  write("tokenizer_config.json", config.dump());
}

}  // namespace baton::test
