// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/preprocessor.h"

#include "prompt/completion_prompts.h"
#include "support/temporary_directory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace baton::prompt {
namespace {

using Prompts = std::vector<tokenizer::TokenIds>;

constexpr tokenizer::TokenId kBos = 128;
constexpr tokenizer::TokenId kStart = 129;
constexpr tokenizer::TokenId kEnd = 130;

constexpr std::string_view kTemplate =
    "{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

void append_utf8(std::string& text, unsigned code_point) {
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
    return;
  }
  text += static_cast<char>(0xC0 | (code_point >> 6));
  text += static_cast<char>(0x80 | (code_point & 0x3F));
}

// A byte-level tokenizer without merges: each ASCII byte is the token of that number. Three added
// tokens follow; encoding with special tokens puts the first of them in front.
std::string tiny_tokenizer() {
  std::string vocabulary;
  for (unsigned byte = 0; byte < 128; ++byte) {
    // ByteLevel's alphabet: printable bytes stand for themselves, the others for U+0100 and up.
    const bool printable = byte > 32 && byte < 127;
    std::string name;
    append_utf8(name, printable ? byte : byte <= 32 ? 0x100 + byte : 0x100 + 33);
    if (name == "\"" || name == "\\") name = "\\" + name;
    vocabulary += fmt::format("{}\"{}\":{}", byte == 0 ? "" : ",", name, byte);
  }
  const auto added = [](tokenizer::TokenId id, std::string_view content) {
    return fmt::format(R"({{"id":{},"content":"{}","single_word":false,"lstrip":false,)"
                       R"("rstrip":false,"normalized":false,"special":true}})",
                       id, content);
  };
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{},{},{}],)"
      R"("normalizer":null,"pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false,)"
      R"("trim_offsets":true,"use_regex":true}},"post_processor":{{"type":"TemplateProcessing",)"
      R"("single":[{{"SpecialToken":{{"id":"<s>","type_id":0}}}},{{"Sequence":{{"id":"A","type_id":0}}}}],)"
      R"("pair":[{{"Sequence":{{"id":"A","type_id":0}}}},{{"Sequence":{{"id":"B","type_id":1}}}}],)"
      R"("special_tokens":{{"<s>":{{"id":"<s>","ids":[128],"tokens":["<s>"]}}}}}},)"
      R"("decoder":{{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}},)"
      R"("model":{{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
      R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false,)"
      R"("vocab":{{{}}},"merges":[]}}}})",
      added(kBos, "<s>"), added(kStart, "<|im_start|>"), added(kEnd, "<|im_end|>"), vocabulary);
}

// The tokens of a text whose special tokens are written out.
tokenizer::TokenIds ids_of(std::string_view text) {
  tokenizer::TokenIds ids;
  while (!text.empty()) {
    bool special = false;
    for (const auto& [name, id] :
         {std::pair("<s>", kBos), {"<|im_start|>", kStart}, {"<|im_end|>", kEnd}}) {
      if (!text.starts_with(name)) continue;
      ids.push_back(id);
      text.remove_prefix(std::string_view(name).size());
      special = true;
      break;
    }
    if (special) continue;
    ids.push_back(static_cast<unsigned char>(text.front()));
    text.remove_prefix(1);
  }
  return ids;
}

class PreprocessorTest : public testing::Test {
 protected:
  PreprocessorTest() {
    folder.write("tokenizer.json", tiny_tokenizer());
    folder.write("tokenizer_config.json",
                 R"({"tokenizer_class":"PreTrainedTokenizerFast","bos_token":"<s>",)"
                 R"("eos_token":{"content":"<|im_end|>"},"model_max_length":4096})");
    folder.write("chat_template.jinja", kTemplate);
  }

  std::shared_ptr<const Preprocessor> load() const {
    return Preprocessor::load({.folder = folder.path()}).value();
  }
  static Result<Prepared> chat(const Preprocessor& preprocessor, std::string_view body,
                               std::stop_token stop = {}) {
    return preprocessor.chat(wire::JsonObject::parse(body).value(),
                             {.now = kNow, .stop = std::move(stop)});
  }
  static Result<Prepared> complete(const Preprocessor& preprocessor, std::string_view body,
                                   std::stop_token stop = {}) {
    return preprocessor.completion(wire::JsonObject::parse(body).value(),
                                   {.now = kNow, .stop = std::move(stop)});
  }
  static Result<std::string> rendered(const Preprocessor& preprocessor, std::string_view body) {
    return preprocessor.rendered(wire::JsonObject::parse(body).value(), {.now = kNow});
  }

  static constexpr std::chrono::system_clock::time_point kNow{std::chrono::seconds(1'700'000'000)};
  test::TemporaryDirectory folder;
};

TEST_F(PreprocessorTest, MakesTheTokensOfAChat) {
  const auto preprocessor = load();
  constexpr std::string_view kBody =
      R"({"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},
          {"type":"text","text":"b"}]}]})";
  constexpr std::string_view kText = "<s><|im_start|>user\na\nb<|im_end|>\n<|im_start|>assistant\n";
  EXPECT_EQ(rendered(*preprocessor, kBody).value(), kText);
  const Prepared prepared = chat(*preprocessor, kBody).value();
  EXPECT_TRUE(prepared.exact());
  EXPECT_EQ(prepared.prompts, Prompts{ids_of(kText)});
}

TEST_F(PreprocessorTest, AddsSpecialTokensToAChatOnlyWhereItIsAsked) {
  const auto preprocessor = load();
  const Prepared prepared =
      chat(*preprocessor,
           R"({"messages":[{"role":"u","content":"a"}],"add_special_tokens":true,
               "add_generation_prompt":false})")
          .value();
  EXPECT_EQ(prepared.prompts, Prompts{ids_of("<s><s><|im_start|>u\na<|im_end|>\n")});
}

TEST_F(PreprocessorTest, LeavesTheLastMessageOpen) {
  const auto preprocessor = load();
  const auto text = rendered(*preprocessor,
                             R"({"messages":[{"role":"user","content":"q"},
                                 {"role":"assistant","content":"It is "}],
                                 "continue_final_message":true,"add_generation_prompt":false})");
  EXPECT_EQ(text.value(), "<s><|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nIt is ");
}

TEST_F(PreprocessorTest, ShowsToolsToTheTemplate) {
  const auto preprocessor = load();
  const auto text = rendered(*preprocessor,
                             R"({"messages":[{"role":"u","content":"a"}],
                                 "add_generation_prompt":false,
                                 "tools":[{"type":"function","function":{"name":"f"}}]})");
  EXPECT_EQ(text.value(),
            R"(<s>[{"type": "function", "function": {"name": "f", "description": null, )"
            R"("parameters": null}}])"
            "<|im_start|>u\na<|im_end|>\n");
}

TEST_F(PreprocessorTest, RendersAtTheTimeItIsGiven) {
  folder.write("chat_template.jinja", "{{ strftime_now('%Y') }}");
  EXPECT_EQ(rendered(*load(), R"({"messages":[{"role":"u","content":"a"}]})").value(), "2023");
}

TEST_F(PreprocessorTest, QuotesATemplateThatRefusesAConversation) {
  folder.write("chat_template.jinja", "{{ raise_exception('Roles must alternate') }}");
  const auto prepared = chat(*load(), R"({"messages":[{"role":"user","content":"a"}]})");
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code(), Errc::InvalidRequest);
  EXPECT_NE(prepared.error().message().find("Roles must alternate"), std::string::npos);
}

TEST_F(PreprocessorTest, WithLittleEffortItMakesNothingOfWhatTakesMore) {
  folder.write("chat_template.jinja",
               "{% for i in range(rounds) %}{% for j in range(rounds) %}{% endfor %}{% endfor %}a");
  const auto preprocessor = load();
  const auto prepared = [&](int rounds, Effort effort) {
    const std::string body =
        R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}],
            "chat_template_kwargs":{"rounds":)" +
        std::to_string(rounds) + "}}";
    return preprocessor
        ->chat(wire::JsonObject::parse(body).value(), {.now = kNow, .effort = effort})
        .value();
  };
  EXPECT_FALSE(prepared(10, Effort::Little).too_much);
  EXPECT_EQ(prepared(10, Effort::Little).prompts, Prompts{ids_of("a")});
  EXPECT_TRUE(prepared(100, Effort::Little).too_much);
  EXPECT_FALSE(prepared(100, Effort::Full).too_much);
  EXPECT_EQ(prepared(100, Effort::Full).prompts, Prompts{ids_of("a")});
}

TEST_F(PreprocessorTest, SaysThatMediaMakeAChatInexact) {
  constexpr std::string_view kBody =
      R"({"messages":[{"role":"user","content":["see",{"type":"image_url","image_url":{"url":"x"}}]}],
          "add_generation_prompt":false})";
  const Prepared prepared = chat(*load(), kBody).value();
  EXPECT_EQ(prepared.inexact, "messages[0] has an image");
  EXPECT_EQ(prepared.prompts, Prompts{ids_of("<s><|im_start|>user\nsee<|im_end|>\n")});
  // The engine sees another conversation, of which this template need not say the same.
  folder.write("chat_template.jinja", "{{ raise_exception('no') }}");
  const Prepared failed = chat(*load(), kBody).value();
  EXPECT_EQ(failed.inexact, "messages[0] has an image");
  EXPECT_TRUE(failed.prompts.empty());
}

TEST_F(PreprocessorTest, SaysThatChatsAreInexactWhereEnginesRenderWithCode) {
  folder.write("config.json", R"({"model_type":"gpt_oss"})");
  const auto preprocessor = load();
  const auto made = chat(*preprocessor, R"({"messages":[{"role":"user","content":"a"}]})");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->inexact, "engines do not use the chat template of a gpt_oss model");
  const auto text = complete(*preprocessor, R"({"prompt":"a"})");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->inexact, "");
}

TEST_F(PreprocessorTest, DoesNotRunTheTemplateOfARequest) {
  constexpr std::string_view kBody =
      R"({"messages":[{"role":"u","content":"a"}],"add_generation_prompt":false,)"
      R"("chat_template":"{{ 'x' * 9 }}"})";
  const Prepared prepared = chat(*load(), kBody).value();
  EXPECT_FALSE(prepared.exact());
  EXPECT_EQ(prepared.prompts, Prompts{ids_of("<s><|im_start|>u\na<|im_end|>\n")});
  EXPECT_FALSE(rendered(*load(), kBody));
}

TEST_F(PreprocessorTest, LeavesToTheEngineWhatIsTooMuchForBaton) {
  const std::string word(3 << 20, 'a');
  const Prepared one = complete(*load(), R"({"prompt":")" + word + "\"}").value();
  EXPECT_NE(one.inexact.find("word"), std::string::npos) << one.inexact;
  std::string many = "\"a\"";
  for (int i = 0; i < 256; ++i) many += ",\"a\"";
  EXPECT_NE(complete(*load(), R"({"prompt":[)" + many + "]}").value().inexact, "");
}

TEST_F(PreprocessorTest, SaysWhereOtherEnginesShapeAChatDifferently) {
  const auto differ = [&](const char* body) { return chat(*load(), body).value().engines_differ; };
  EXPECT_EQ(differ(R"({"messages":[{"role":"user","content":"a"}]})"), "");
  EXPECT_NE(differ(R"({"messages":[{"role":"user","content":"a"}],"tool_choice":"none"})"), "");
  EXPECT_NE(differ(R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]})"), "");
  EXPECT_NE(differ(R"({"messages":[{"role":"user","content":"a"},
                          {"role":"assistant","content":"b"}]})"),
            "");
}

TEST_F(PreprocessorTest, WorksWithoutATemplateExceptForChats) {
  std::filesystem::remove(folder.path() / "chat_template.jinja");
  const auto preprocessor = load();
  EXPECT_FALSE(preprocessor->has_chat_template());
  // An engine may have a template of its own; to show one is another matter.
  constexpr const char* kChat = R"({"messages":[{"role":"user","content":"a"}]})";
  const Prepared prepared = chat(*preprocessor, kChat).value();
  EXPECT_NE(prepared.inexact.find("chat template"), std::string::npos);
  EXPECT_TRUE(prepared.prompts.empty());
  EXPECT_EQ(rendered(*preprocessor, kChat).error().code(), Errc::InvalidRequest);
  const Prepared own =
      chat(*preprocessor, R"({"messages":[{"role":"u","content":"a"}],"chat_template":"x"})")
          .value();
  EXPECT_FALSE(own.exact());
  EXPECT_TRUE(own.prompts.empty());
  EXPECT_EQ(complete(*preprocessor, R"({"prompt":"a"})").value().prompts, Prompts{ids_of("<s>a")});
}

TEST_F(PreprocessorTest, MakesTheTokensOfCompletions) {
  const auto preprocessor = load();
  EXPECT_TRUE(preprocessor->has_chat_template());
  const Prepared several = complete(*preprocessor, R"({"prompt":["a b",[5,130],""]})").value();
  EXPECT_TRUE(several.exact());
  EXPECT_EQ(several.prompts,
            (Prompts{ids_of("<s>a b"), tokenizer::TokenIds{5, 130}, ids_of("<s>")}));
  EXPECT_EQ(complete(*preprocessor, R"({"prompt":"a","add_special_tokens":false})").value().prompts,
            Prompts{ids_of("a")});
}

TEST_F(PreprocessorTest, SaysWhatMakesACompletionInexact) {
  const auto preprocessor = load();
  EXPECT_EQ(complete(*preprocessor, R"({"prompt":"a","suffix":"b"})").value().inexact,
            "suffix is set");
  EXPECT_EQ(complete(*preprocessor, R"({"prompt":"a","truncate_prompt_tokens":1})").value().inexact,
            "truncate_prompt_tokens is set");
  const Prepared embeds = complete(*preprocessor, R"({"prompt_embeds":"AAAA"})").value();
  EXPECT_EQ(embeds.inexact, "prompt_embeds is set");
  EXPECT_TRUE(embeds.prompts.empty());
}

TEST_F(PreprocessorTest, RefusesCompletionsItCannotRead) {
  const auto preprocessor = load();
  for (const char* const body :
       {"{}", R"({"prompt":null})", R"({"prompt":[131]})", R"({"prompt":[[1],[4000000000]]})",
        R"({"prompt":{}})", R"({"prompt":"a","add_special_tokens":3})"}) {
    const auto prepared = complete(*preprocessor, body);
    ASSERT_FALSE(prepared) << body;
    EXPECT_EQ(prepared.error().code(), Errc::InvalidRequest) << body;
  }
}

TEST_F(PreprocessorTest, TakesIdsThatOnlyTheWeightsHave) {
  folder.write("config.json", R"({"vocab_size":140,"max_position_embeddings":2048})");
  const auto preprocessor = load();
  EXPECT_TRUE(complete(*preprocessor, R"({"prompt":[139]})"));
  EXPECT_FALSE(complete(*preprocessor, R"({"prompt":[140]})"));
  EXPECT_EQ(preprocessor->max_model_length(), 2048U);
}

TEST_F(PreprocessorTest, StopsWhereTheClientIsGone) {
  const auto preprocessor = load();
  std::stop_source source;
  source.request_stop();
  for (const char* const body : {R"({"prompt":["a","b"]})", R"({"prompt":[[1],[2]]})"}) {
    const auto prepared = complete(*preprocessor, body, source.get_token());
    ASSERT_FALSE(prepared) << body;
    EXPECT_EQ(prepared.error().code(), Errc::ClientGone);
  }
}

TEST_F(PreprocessorTest, RemembersWhatItTokenizedBefore) {
  const auto preprocessor = load();
  const std::string long_text(200, 'x');
  const std::string first =
      fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}]}})", long_text);
  const std::string second = fmt::format(
      R"({{"messages":[{{"role":"user","content":"{}"}},{{"role":"assistant","content":"y"}}]}})",
      long_text);
  ASSERT_TRUE(chat(*preprocessor, first));
  EXPECT_EQ(preprocessor->cache_stats().hits, 0U);
  const Prepared prepared = chat(*preprocessor, second).value();
  EXPECT_EQ(preprocessor->cache_stats().hits, 1U);
  EXPECT_EQ(prepared.prompts, Prompts{ids_of("<s><|im_start|>user\n" + long_text +
                                             "<|im_end|>\n<|im_start|>assistant\ny<|im_end|>\n"
                                             "<|im_start|>assistant\n")});

  const auto forgetful = Preprocessor::load({.folder = folder.path(), .cache_bytes = 0}).value();
  ASSERT_TRUE(chat(*forgetful, first));
  EXPECT_EQ(chat(*forgetful, second).value().prompts, prepared.prompts);
  EXPECT_EQ(forgetful->cache_stats().misses, 0U);
}

TEST_F(PreprocessorTest, ServesSeveralThreads) {
  const auto preprocessor = load();
  std::vector<std::jthread> threads;
  std::vector<int> right(4, 0);
  for (std::size_t thread = 0; thread < right.size(); ++thread) {
    threads.emplace_back([&, thread] {
      for (int turn = 0; turn < 50; ++turn) {
        const std::string text(static_cast<std::size_t>(80 + turn % 7), 'z');
        const auto prepared =
            chat(*preprocessor, fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}],)"
                                            R"("add_generation_prompt":false}})",
                                            text));
        if (prepared &&
            prepared->prompts.front() == ids_of("<s><|im_start|>user\n" + text + "<|im_end|>\n")) {
          ++right[thread];
        }
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, std::vector<int>(4, 50));
}

TEST_F(PreprocessorTest, NamesTheFileThatItCannotUse) {
  const auto message = [&](const Sources& sources) {
    const auto loaded = Preprocessor::load(sources);
    return loaded ? std::string() : loaded.error().message();
  };
  EXPECT_NE(message({.folder = folder.path(), .chat_template = folder.path() / "none.jinja"})
                .find("none.jinja"),
            std::string::npos);
  folder.write("config.json", "{");
  EXPECT_NE(message({.folder = folder.path()}).find("config.json"), std::string::npos);
  EXPECT_NE(message({.folder = folder.path() / "nowhere"}).find("nowhere"), std::string::npos);
  folder.remove("tokenizer.json");
  folder.write("tokenizer.json/file", "");
  EXPECT_EQ(message({.folder = folder.path()}),
            "tokenizer.json: cannot be read: it is a directory, not a regular file");
}

TEST_F(PreprocessorTest, FollowsTheReleaseWithMessagesOfDevelopers) {
  const auto preprocessor = load();
  const auto body = wire::JsonObject::parse(
      R"({"messages":[{"role":"user","content":"u"},{"role":"developer","content":"d"}],
          "add_generation_prompt":false})");
  const auto text = [&](const Rules& rules) {
    return preprocessor->rendered(*body, {.now = kNow, .rules = rules}).value();
  };
  EXPECT_EQ(text(rules_of(model::Engine::Vllm, model::Version{0, 23, 0})),
            "<s><|im_start|>system\nd<|im_end|>\n<|im_start|>user\nu<|im_end|>\n");
  EXPECT_EQ(text(rules_of(model::Engine::Vllm, model::Version{0, 22, 1})),
            "<s><|im_start|>user\nu<|im_end|>\n<|im_start|>developer\nd<|im_end|>\n");
  folder.write("chat_template.jinja", std::string(kTemplate) + "{# 'developer' #}");
  EXPECT_EQ(load()->rendered(*body, {.now = kNow}).value(),
            "<s><|im_start|>user\nu<|im_end|>\n<|im_start|>developer\nd<|im_end|>\n");
}

// DeepSeek V3 and its like: transformers 5 leaves it to tokenizer.json.
TEST_F(PreprocessorTest, FollowsTheReleaseWithSpecialTokensOfTheConfiguration) {
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class":"LlamaTokenizerFast","bos_token":"<s>",)"
               R"("eos_token":"<|im_end|>","add_bos_token":false,"add_eos_token":true})");
  const auto preprocessor = load();
  const auto body = wire::JsonObject::parse(R"({"prompt":"a"})");
  const auto ids = [&](const Rules& rules) {
    return preprocessor->completion(*body, {.now = kNow, .rules = rules}).value().prompts;
  };
  EXPECT_EQ(ids({}), Prompts{ids_of("<s>a")});
  EXPECT_EQ(ids({.transformers = tokenizer::Transformers::V4}), Prompts{ids_of("a<|im_end|>")});
}

TEST_F(PreprocessorTest, LeavesChatsToAWorkerThatWritesThemWithCode) {
  const auto body = wire::JsonObject::parse(R"({"messages":[{"role":"user","content":"u"}]})");
  EXPECT_FALSE(
      load()->chat(*body, {.now = kNow, .rules = {.chats_in_code = true}}).value().exact());
}

TEST_F(PreprocessorTest, LeavesNoMessageOpenForATemplateWithoutContent) {
  folder.write("chat_template.jinja", "{{ messages | tojson }}");
  const auto preprocessor = load();
  const auto body = wire::JsonObject::parse(
      R"({"messages":[{"role":"user","content":"u"}],"continue_final_message":true})");
  const auto refused = preprocessor->rendered(*body, {.now = kNow});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().param(), "continue_final_message");
  EXPECT_TRUE(preprocessor->rendered(
      *body, {.now = kNow, .rules = {.transformers = tokenizer::Transformers::V4}}));
}

}  // namespace
}  // namespace baton::prompt
