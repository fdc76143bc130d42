// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/api_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace baton::config {
namespace {

constexpr std::size_t kMaxFileBytes = 1024 * 1024;

// What a client can send after "Bearer ": visible ASCII without blanks.
bool is_sendable(std::string_view key) {
  return !key.empty() && std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; });
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const auto begin = line.find_first_not_of(kBlank);
  if (begin == line.npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

void read_list(const Section& root, std::vector<std::string>& keys, Problems& problems) {
  const Node* const node = root.find("api_keys");
  if (node == nullptr) return;
  const std::vector<Node>& items = root.list("api_keys");
  if (node->kind == Node::Kind::List && items.empty()) {
    problems.add(*node, "api_keys", "is empty; give a key, or remove it to let everybody in");
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].kind == Node::Kind::Scalar && is_sendable(items[i].text)) {
      keys.push_back(items[i].text);
    } else {
      problems.add(items[i], fmt::format("api_keys[{}]", i),
                   "must be text of visible ASCII characters without blanks");
    }
  }
}

void read_file(const Node& node, const std::string& file, std::vector<std::string>& keys,
               Problems& problems) {
  constexpr std::string_view kPath = "api_keys_file";
  std::error_code error;
  std::ifstream in;
  // Only a regular file: a pipe or a device may never end.
  if (std::filesystem::is_regular_file(file, error)) in.open(file, std::ios::binary);
  if (!in.is_open()) {
    problems.add(node, kPath,
                 fmt::format("cannot read {}; check the path and its permissions", shown(file)));
    return;
  }
  std::string text(kMaxFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kMaxFileBytes) {
    problems.add(node, kPath, "names a file larger than 1 MiB; it must hold one key a line");
    return;
  }
  const std::size_t before = keys.size();
  std::string_view rest = text;
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
    problems.add(node, kPath,
                 "names a file without a key; add one, or remove it to let everybody in");
  }
}

}  // namespace

std::vector<std::string> read_api_keys(const Section& root, Problems& problems) {
  std::vector<std::string> keys;
  read_list(root, keys, problems);
  std::string file;
  root.read("api_keys_file", file, parse_path);
  if (!file.empty()) read_file(*root.find("api_keys_file"), file, keys, problems);
  return keys;
}

}  // namespace baton::config
