// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/api_keys.h"

#include "config/secret_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace baton::config {
namespace {

// True for keys that a client can send after "Bearer ": visible ASCII without blanks.
bool is_sendable(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const auto begin = line.find_first_not_of(kBlank);
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

// The settings that hold the keys, and the message if neither is given.
struct Source {
  std::string list;
  std::string file;
  std::string_view without;
};

void read_list(const Section& root, const Source& source, std::vector<std::string>& keys,
               Problems& problems) {
  const Node* const node = root.find(source.list);
  if (node == nullptr) return;
  const std::vector<Node>& items = root.list(source.list);
  if (node->kind == Node::Kind::List && items.empty()) {
    problems.add(*node, source.list,
                 fmt::format("is empty; give a key, or remove it {}", source.without));
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].kind == Node::Kind::Scalar && is_sendable(items[i].text)) {
      keys.push_back(items[i].text);
    } else {
      problems.add(items[i], fmt::format("{}[{}]", source.list, i),
                   "must be text of visible ASCII characters without blanks");
    }
  }
}

void read_file(const Node& node, const Source& source, const std::string& file,
               std::vector<std::string>& keys, Problems& problems) {
  const auto text = read_secret_file(file);
  if (!text) return problems.add(node, source.file, text.error());
  const std::size_t before = keys.size();
  std::string_view rest = *text;
  for (int number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (!is_sendable(line)) {
      problems.add({file, number, "", "a key must be visible ASCII characters without blanks"});
      return;
    }
    keys.emplace_back(line);
  }
  if (keys.size() == before) {
    problems.add(
        node, source.file,
        fmt::format("names a file without a key; add one, or remove it {}", source.without));
  }
}

}  // namespace

std::vector<std::string> read_key_list(const Section& root, const std::string& name,
                                       std::string_view without, Problems& problems) {
  const Source source{name, name + "_file", without};
  std::vector<std::string> keys;
  read_list(root, source, keys, problems);
  std::string file;
  root.read(source.file, file, parse_path);
  if (!file.empty()) read_file(*root.find(source.file), source, file, keys, problems);
  return keys;
}

}  // namespace baton::config
