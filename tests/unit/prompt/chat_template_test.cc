// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/chat_template.h"

#include "support/temporary_directory.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::prompt {
namespace {

// What the template for such requests prints; "none" where there is none.
std::string chosen(const ChatTemplates& templates, WithTools tools) {
  const ChatTemplate* const one = templates.choose(tools);
  if (!one) return "none";
  return one->program->render({}, {.now = {}}).value();
}
std::string both(const test::TemporaryDirectory& folder, const std::filesystem::path& file = {}) {
  const auto templates = ChatTemplates::load(folder.path(), file).value();
  return chosen(templates, WithTools::No) + "," + chosen(templates, WithTools::Yes);
}

TEST(ChatTemplates, MayBeMissing) {
  const test::TemporaryDirectory folder;
  EXPECT_EQ(both(folder), "none,none");
  EXPECT_TRUE(ChatTemplates::load(folder.path(), {}).value().empty());
  folder.write("tokenizer_config.json", R"({"chat_template":null,"model_max_length":1e30})");
  EXPECT_EQ(both(folder), "none,none");
}

TEST(ChatTemplates, AreInTheTokenizersConfiguration) {
  const test::TemporaryDirectory folder;
  folder.write("tokenizer_config.json", R"({"chat_template":"{{ 'a\n' }}b"})");
  EXPECT_EQ(both(folder), "a\nb,a\nb");
}

TEST(ChatTemplates, MayHaveOneForTools) {
  const test::TemporaryDirectory folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template":[{"name":"rag","template":"{% nonsense"},
                   {"name":"default","template":"d"},{"name":"tool_use","template":"t"}]})");
  EXPECT_EQ(both(folder), "d,t");
  folder.write("tokenizer_config.json",
               R"({"chat_template":[{"name":"tool_use","template":"t"}]})");
  EXPECT_EQ(both(folder), "none,t");
  folder.write("tokenizer_config.json", R"({"chat_template":[{"name":"default","template":"d"}]})");
  EXPECT_EQ(both(folder), "d,d");
}

TEST(ChatTemplates, InFilesGoBeforeTheConfiguration) {
  const test::TemporaryDirectory folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template":[{"name":"default","template":"d"},
                                    {"name":"tool_use","template":"t"}]})");
  folder.write("chat_template.jinja", "file");
  EXPECT_EQ(both(folder), "file,file");
  folder.write("additional_chat_templates/tool_use.jinja", "tools");
  folder.write("additional_chat_templates/readme.txt", "no");
  EXPECT_EQ(both(folder), "file,tools");
}

TEST(ChatTemplates, OfAProcessorServeRequestsWithoutTools) {
  const test::TemporaryDirectory folder;
  folder.write("chat_template.json", R"({"chat_template":"p"})");
  EXPECT_EQ(both(folder), "p,p");
  folder.write("tokenizer_config.json", R"({"chat_template":"t"})");
  EXPECT_EQ(both(folder), "p,t");
  folder.write("chat_template.jinja", "file");
  EXPECT_EQ(both(folder), "file,file");
}

TEST(ChatTemplates, AreReplacedByAFileThatIsGiven) {
  const test::TemporaryDirectory folder;
  folder.write("chat_template.jinja", "own");
  EXPECT_EQ(both(folder, folder.write("other.jinja", "given")), "given,given");
}

TEST(ChatTemplates, KnowTheirContentFormat) {
  const test::TemporaryDirectory folder;
  folder.write(
      "chat_template.jinja",
      "{% for m in messages %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endfor %}");
  const auto templates = ChatTemplates::load(folder.path(), {}).value();
  EXPECT_EQ(templates.choose(WithTools::No)->format(ContentSearch::Members), ContentFormat::Parts);
}

TEST(ChatTemplates, ThatCannotBeUsedAreRefusedByName) {
  const auto message = [](const test::TemporaryDirectory& folder,
                          const std::filesystem::path& file = {}) {
    const auto templates = ChatTemplates::load(folder.path(), file);
    return templates ? std::string() : templates.error().message();
  };
  const test::TemporaryDirectory folder;
  EXPECT_NE(message(folder, folder.path() / "absent.jinja").find("absent.jinja"),
            std::string::npos);
  folder.write("tokenizer_config.json", R"({"chat_template":7})");
  EXPECT_NE(message(folder).find("tokenizer_config.json"), std::string::npos);
  folder.write("tokenizer_config.json", R"({"chat_template":[{"name":"default"}]})");
  EXPECT_NE(message(folder).find("tokenizer_config.json"), std::string::npos);
  folder.write("tokenizer_config.json", "[");
  EXPECT_NE(message(folder).find("tokenizer_config.json"), std::string::npos);
  folder.write("chat_template.jinja", "{% if %}");
  EXPECT_NE(message(folder).find("chat_template.jinja"), std::string::npos);
}

}  // namespace
}  // namespace baton::prompt
