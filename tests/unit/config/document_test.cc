// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/document.h"

#include "unit/config/parsing.h"

#include <random>

namespace baton::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Document, TextThatIsNotYamlIsRefusedWithItsLine) {
  EXPECT_THAT(refused("listen: a\nmodels: [\n"), ElementsAre(HasSubstr("cannot be read as YAML")));
  EXPECT_THAT(refused("threads: 1\n  log: x\n"), says("baton.yaml:2", "cannot be read as YAML"));
  EXPECT_THAT(refused("a: &x 1\nb: *x\n"), says("baton.yaml:2", "aliases"));
  EXPECT_THAT(refused("? [a]\n: b\n"), says("baton.yaml:1", "a key must be plain text"));
  EXPECT_THAT(refused("threads: 1\n---\nthreads: 2\n"),
              says("baton.yaml:3", "second YAML document"));
  EXPECT_THAT(refused(std::string_view("threads: 1\n\0models: x", 21)),
              says("baton.yaml:2", "control character"));
}

TEST(Document, ATabInTheIndentationIsNamedWithItsLine) {
  for (const char* text :
       {"log:\n\tlevel: info\n", "log:\n \tlevel: info\n", "models:\n\t- name: x\n",
        "models:\n  -\tname: x\n", "log: {}\n\tlevel: info\n"}) {
    EXPECT_THAT(refused(text), says("baton.yaml:2", "a tab in the indentation")) << text;
  }
  EXPECT_THAT(refused("log:\n  level: info\n\tformat: json\n"),
              says("baton.yaml:3", "a tab in the indentation"));
  EXPECT_THAT(refused("log:\tlevel: info\n"), says("baton.yaml:1", "cannot be read as YAML"));
  EXPECT_THAT(refused("log: [\n\t"), Not(IsEmpty()));
}

TEST(Document, TabsElsewhereAreAllowed) {
  for (const char* text : {"log:\n  level:\tinfo\n", "log:\n  level: info\t# why\n",
                           "\t\nlog:\n  level: info\n", "log: {\n\tlevel: info}\n"}) {
    EXPECT_TRUE(read_document(text, "baton.yaml")) << text;
  }
}

TEST(Document, DeepNestingAndHugeTextsAreRefused) {
  EXPECT_THAT(refused(std::string(10'000, '[')), ElementsAre(HasSubstr("nested too deeply")));
  std::string maps;
  for (int i = 0; i < 10'000; ++i) maps += "{a: ";
  EXPECT_THAT(refused(maps), ElementsAre(HasSubstr("nested too deeply")));
  std::string keys;
  for (int i = 0; i < 10'000; ++i) keys += "? ";
  EXPECT_THAT(refused(keys), Not(IsEmpty()));
  EXPECT_THAT(refused(std::string(4 * 1024 * 1024 + 1, ' ')), ElementsAre(HasSubstr("4 MiB")));
}

TEST(Document, NeverThrowsWhateverTheBytes) {
  const std::string seed =
      with_fleet("log: {format: json}\ntimeouts:\n  idle: 1s\napi_keys: [a]\n");
  const std::string_view bytes = "[]{}:,-?*&!|>'\"%@`#\n\t \\~x0\xff\xc3";
  std::mt19937 random(1);  // a fixed seed: the same texts on every run
  const auto below = [&](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  for (int round = 0; round < 3000; ++round) {
    std::string text = seed;
    for (std::size_t edits = 1 + below(6); edits > 0; --edits) {
      text[below(text.size())] = bytes[below(bytes.size())];
      if (below(4) == 0) text.resize(1 + below(text.size()));
    }
    EXPECT_NO_THROW({
      const auto config = parse(text, "f", {});
      EXPECT_TRUE(config || !config.error().empty());
    }) << text;
  }
}

TEST(Document, IsUtf8) {
  const auto document = read_document("name: a\xff", "baton.yaml");
  ASSERT_FALSE(document);
  EXPECT_THAT(document.error().message, testing::HasSubstr("not UTF-8"));
  EXPECT_TRUE(read_document("name: a\xc3\xa4", "baton.yaml"));
}

TEST(JsonDocument, HasTheTreeOfItsYaml) {
  const auto json = read_json_or_yaml(
      R"({"a": [1, -2, 0.5, 1e1, true, null, "x"], "b": {"c": ""}})", "worker.json");
  ASSERT_TRUE(json);
  ASSERT_EQ(json->items.size(), 2U);
  EXPECT_EQ(json->items[1].items.at(0).key, "c");
  const std::vector<Node>& list = json->find("a")->items;
  std::vector<std::string> texts;
  for (const Node& node : list) texts.push_back(node.text);
  EXPECT_THAT(texts, testing::ElementsAre("1", "-2", "0.5", "10", "true", "", "x"));
  EXPECT_EQ(list.at(5).kind, Node::Kind::Null);
  EXPECT_EQ(list.at(6).kind, Node::Kind::Scalar);
}

TEST(JsonDocument, NestsNoDeeperThanYaml) {
  const auto json = read_json_or_yaml(std::string(33, '[') + std::string(33, ']'), "worker.json");
  ASSERT_FALSE(json);
  EXPECT_THAT(json.error().message, testing::HasSubstr("nested too deeply"));
  EXPECT_TRUE(read_json_or_yaml(std::string(32, '[') + std::string(32, ']'), "worker.json"));
}

}  // namespace
}  // namespace baton::config
