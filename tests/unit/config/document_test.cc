// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/document.h"

#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

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

Node document(std::string_view text) {
  auto root = read_document(text, "baton.yaml");
  if (root) return *std::move(root);
  ADD_FAILURE() << root.error().to_string();
  return {};
}

TEST(Document, EveryNodeKnowsItsLine) {
  const Node root = document(
      "# first\n"
      "a: 1\n"
      "b:\n"
      "  - x\n"
      "  -\n"
      "    y: z\n"
      "c: {d: e,\n"
      "    f: [g,\n"
      "        h]}\n");
  ASSERT_EQ(root.items.size(), 3U);
  EXPECT_EQ(root.find("a")->line, 2);
  EXPECT_EQ(root.find("b")->key_line, 3);
  EXPECT_EQ(root.find("b")->items.at(0).line, 4);
  EXPECT_EQ(root.find("b")->items.at(1).find("y")->line, 6);
  EXPECT_EQ(root.find("c")->find("d")->line, 7);
  EXPECT_EQ(root.find("c")->find("f")->key_line, 8);
  EXPECT_EQ(root.find("c")->find("f")->items.at(1).line, 9);
}

TEST(Document, ScalarsAreTheirText) {
  const Node root = document(
      "plain: a b # not this\n"
      "single: 'it''s # this'\n"
      "double: \"tab\\t\\u00e4\"\n"
      "folded: >-\n  one\n  two\n"
      "kept: |\n  one\n  two\n"
      "number: 0x10\n"
      "word: yes\n"
      "empty: ''\n");
  for (const auto& [key, text] :
       std::vector<std::pair<std::string_view, std::string_view>>{{"plain", "a b"},
                                                                  {"single", "it's # this"},
                                                                  {"double", "tab\t\xc3\xa4"},
                                                                  {"folded", "one two"},
                                                                  {"kept", "one\ntwo\n"},
                                                                  {"number", "0x10"},
                                                                  {"word", "yes"},
                                                                  {"empty", ""}}) {
    ASSERT_TRUE(root.find(key)) << key;
    EXPECT_EQ(root.find(key)->kind, Node::Kind::Scalar) << key;
    EXPECT_EQ(root.find(key)->text, text) << key;
  }
}

TEST(Document, NothingIsNull) {
  for (const char* text : {"a:", "a: ~", "a: null"}) {
    EXPECT_EQ(document(text).find("a")->kind, Node::Kind::Null) << text;
  }
  for (const char* text : {"", "\n\n", "# only this\n", "---\n", "---\n...\n"}) {
    EXPECT_EQ(document(text).kind, Node::Kind::Null) << text;
  }
}

TEST(Document, KeysThatStandTwiceAreKept) {
  const Node root = document("a: 1\nb: 2\na: 3\n");
  ASSERT_EQ(root.items.size(), 3U);
  EXPECT_EQ(root.items[2].key, "a");
  EXPECT_EQ(root.items[2].text, "3");
  EXPECT_EQ(root.find("a")->text, "1");  // the first
}

TEST(Document, OnlyMapsHaveKeys) {
  EXPECT_EQ(document("[a, b]").find(""), nullptr);
  EXPECT_EQ(document("a").find("a"), nullptr);
  EXPECT_EQ(document("{a: 1}").find("b"), nullptr);
}

TEST(Document, LinesMayEndAsOnWindows) {
  const Node root = document("a: 1\r\nb: 2\r\n");
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_EQ(root.find("b")->line, 2);
}

TEST(Document, AByteOrderMarkIsNoPartOfTheFirstKey) {
  EXPECT_TRUE(document("\xef\xbb\xbfthreads: 1\n").find("threads"));
}

TEST(Document, AnAnchorWithoutAnAliasDoesNoHarm) {
  EXPECT_EQ(document("a: &name 1\n").find("a")->text, "1");
  EXPECT_THAT(refused("a: &x {b: 1}\nc:\n  <<: *x\n"), says("baton.yaml:3", "aliases"));
}

TEST(Document, EachControlCharacterIsRefusedAtItsLine) {
  for (int c = 0; c < 0x20; ++c) {
    std::string text = "a: 1\nb: x";
    text += static_cast<char>(c);
    const auto read = read_document(text + "y\n", "baton.yaml");
    const bool allowed = c == '\n' || c == '\r' || c == '\t';
    if (allowed) continue;  // what they mean is up to YAML
    ASSERT_FALSE(read) << c;
    EXPECT_EQ(read.error().line, 2) << c;
    EXPECT_EQ(read.error().message, "control character in the text; save the file as plain UTF-8");
  }
  EXPECT_FALSE(read_document("a: \x7f", "baton.yaml"));
}

TEST(Document, BytesThatAreNoUtf8AreRefusedWhereverTheyStand) {
  for (const char* text : {"\x80: 1", "a: \xc3", "a: \xc0\xaf", "a: \xed\xa0\x80", "# \xfe\n"}) {
    const auto read = read_document(text, "baton.yaml");
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().message, "is not UTF-8; save the file as plain UTF-8");
    EXPECT_EQ(read.error().line, 0);
  }
}

TEST(Document, MayBeFourMebibytes) {
  std::string text = "a: 1\n#";
  text.append(kMaxBytes - text.size(), 'x');
  EXPECT_EQ(document(text).find("a")->text, "1");
  text += 'x';
  const auto read = read_document(text, "baton.yaml");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().to_string(),
            "baton.yaml: is larger than 4 MiB; is this a configuration file?");
}

TEST(Document, NestsThirtyTwoDeep) {
  EXPECT_TRUE(read_document(std::string(32, '[') + std::string(32, ']'), "f"));
  EXPECT_FALSE(read_document(std::string(33, '[') + std::string(33, ']'), "f"));
  std::string maps = "x";
  for (int i = 0; i < 32; ++i) maps = "{a: " + maps + "}";
  EXPECT_TRUE(read_document(maps, "f"));
  const auto deeper = read_document("{a: " + maps + "}", "f");
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().line, 1);
}

// A tree by chance, written as JSON, which is YAML as well where strings need no escapes.
struct RandomTree {
  std::mt19937 random;

  std::size_t below(std::size_t n) { return random() % n; }

  std::string make(Node& node, int depth) {
    const std::size_t kind = below(depth == 0 ? 3 : 5);
    if (kind == 0) {
      node.kind = Node::Kind::Null;
      return "null";
    }
    if (kind <= 2) {
      node.kind = Node::Kind::Scalar;
      node.text = kind == 1 ? fmt::to_string(below(1000)) : "t" + fmt::to_string(below(1000));
      return kind == 1 ? node.text : "\"" + node.text + "\"";
    }
    node.kind = kind == 3 ? Node::Kind::List : Node::Kind::Map;
    std::string inside;
    for (std::size_t n = below(4); n > 0; --n) {
      Node& item = node.items.emplace_back();
      if (!inside.empty()) inside += ", ";
      if (kind == 4) {
        item.key = "k" + fmt::to_string(below(5));  // also twice
        inside += "\"" + item.key + "\": ";
      }
      inside += make(item, depth - 1);
    }
    return kind == 3 ? "[" + inside + "]" : "{" + inside + "}";
  }
};

bool alike(const Node& a, const Node& b) {
  return a.kind == b.kind && a.text == b.text && a.key == b.key &&
         std::ranges::equal(a.items, b.items, alike);
}

TEST(Document, IsTheTreeThatWasWritten) {
  RandomTree trees{std::mt19937(11)};
  for (int round = 0; round < 500; ++round) {
    Node expected;
    const std::string text = trees.make(expected, 4);
    const auto yaml = read_document(text, "f");
    const auto json = read_json_or_yaml(text, "f");
    ASSERT_TRUE(yaml && json) << text;
    EXPECT_TRUE(alike(*yaml, expected)) << text;
    EXPECT_TRUE(alike(*json, expected)) << text;
  }
}

TEST(JsonDocument, NumbersAreTheirValuesInFull) {
  for (const auto& [number, text] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"18446744073709551615", "18446744073709551615"},
           {"-9223372036854775808", "-9223372036854775808"},
           {"1e3", "1000"},
           {"-2.50", "-2.5"},
           {"1e-7", "0.0000001"},
           {"1E22", "10000000000000000000000"}}) {
    const auto read = read_json_or_yaml(fmt::format("[{}]", number), "f");
    ASSERT_TRUE(read) << number;
    EXPECT_EQ(read->items.at(0).text, text);
  }
}

TEST(JsonDocument, TheLongestNumberFits) {
  const auto least = read_json_or_yaml("[5e-324]", "f");
  ASSERT_TRUE(least);
  EXPECT_EQ(least->items.at(0).text, "0." + std::string(323, '0') + "5");
  const auto longest = read_json_or_yaml("[-2.2250738585072014e-308]", "f");
  ASSERT_TRUE(longest);
  EXPECT_EQ(longest->items.at(0).text, "-0." + std::string(307, '0') + "22250738585072014");
  const auto most = read_json_or_yaml("[1e308]", "f");
  ASSERT_TRUE(most);
  EXPECT_EQ(most->items.at(0).text.size(), 309U);
}

TEST(JsonDocument, HasNoLines) {
  const auto json = read_json_or_yaml("{\n\"a\":\n1}", "f");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->find("a")->line, 0);
  EXPECT_EQ(json->find("a")->key_line, 0);
  const auto yaml = read_json_or_yaml("b: 2\na:\n  1\n", "f");
  ASSERT_TRUE(yaml);
  EXPECT_EQ(yaml->find("a")->line, 3);
}

TEST(JsonDocument, ThatIsCutIsReportedAsYamlWouldBe) {
  const std::string whole = R"({"a": [1, {"b": "c"}], "d": null})";
  for (std::size_t size = 1; size < whole.size(); ++size) {
    const auto read = read_json_or_yaml(std::string_view(whole).substr(0, size), "f");
    ASSERT_FALSE(read) << size;
    EXPECT_THAT(read.error().to_string(), testing::StartsWith("f:1: cannot be read as YAML: "));
  }
}

}  // namespace
}  // namespace baton::config
