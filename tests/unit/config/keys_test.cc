// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "unit/config/parsing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>

namespace baton::config {
namespace {

std::string document() {
  std::ifstream in(BATON_SOURCE_DIR "/docs/configuration.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

bool is_key(std::string_view path) {
  return std::ranges::find(keys(), path, &Key::path) != keys().end();
}

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

TEST(Keys, StandOnceEach) {
  std::set<std::string_view> seen;
  for (const Key& key : keys()) EXPECT_TRUE(seen.insert(key.path).second) << key.path;
}

TEST(Keys, EveryKeyOutsideListsHasTheFlagOfItsPath) {
  for (const Key& key : keys()) {
    if (key.path == "etcd.endpoints") {
      EXPECT_EQ(key.flag, "--etcd");  // the one list that people write on a command line
      continue;
    }
    if (key.type == "list" || key.path.find('[') != key.path.npos) {
      EXPECT_EQ(key.flag, "");
      continue;
    }
    std::string expected = "--" + std::string(key.path);
    std::ranges::replace(expected, '_', '-');
    EXPECT_EQ(key.flag, expected);
  }
}

TEST(Keys, EveryDefaultInTheTableIsTheDefault) {
  // With what some keys need to have an effect at all.
  const std::string text = with_fleet(
      "etcd: {endpoints: ['http://h:1']}\ncanary: {idle: 1m}\n"
      "tls: {certificate: a, key: b}\n"
      "kv_index: {snapshot: a}");
  const Config plain = accepted(text);
  for (const Key& key : keys()) {
    if (key.flag.empty() || key.def == "none") continue;
    EXPECT_EQ(accepted(text, {{std::string(key.path), std::string(key.def)}}), plain) << key.path;
  }
}

TEST(ConfigurationDocument, HasARowForEveryKey) {
  const std::string text = document();
  for (const Key& key : keys()) {
    const std::string flag = key.flag.empty() ? "–" : fmt::format("`{}`", key.flag);
    const std::string row = fmt::format("\n| `{}` | {} | {} | {} | {} |\n", key.path, flag,
                                        key.type, key.def, key.meaning);
    EXPECT_NE(text.find(row), text.npos) << "missing:" << row;
  }
}

TEST(ConfigurationDocument, NamesNoKeyOrFlagThatDoesNotExist) {
  const std::string text = document();
  for (const std::string& path : matches(text, "\\n\\| `([^`]+)`"))
    EXPECT_TRUE(is_key(path)) << path;
  for (const std::string& path : matches(
           text,
           "`((timeouts|limits|log|tls|etcd|health|canary|probe|kv_index|models)[.\\[][^`]*)`")) {
    EXPECT_TRUE(is_key(path)) << path;
  }
  for (const std::string& flag : matches(text, "`(--[a-z.-]+)")) {
    const bool known = flag == "--config" || flag == "--worker" || flag == "--policy" ||
                       std::ranges::find(keys(), flag, &Key::flag) != keys().end();
    EXPECT_TRUE(known) << flag;
  }
}

TEST(ConfigurationDocument, HasAnExampleThatWorksAndShowsEveryKey) {
  const std::string text = document();
  const std::string begin = "<!-- full example -->\n\n```yaml\n";
  const auto at = text.find(begin);
  ASSERT_NE(at, text.npos);
  const std::string example =
      text.substr(at + begin.size(), text.find("\n```", at + begin.size()) - at - begin.size());
  EXPECT_FALSE(accepted(example).models.empty());
  for (const Key& key : keys()) {
    const std::string name(key.path.substr(key.path.rfind('.') + 1));
    EXPECT_NE(example.find(name + ":"), example.npos) << key.path;
  }
}

}  // namespace
}  // namespace baton::config
