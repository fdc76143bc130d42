// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "config/wire_options.h"

#include "config/secret_file.h"
#include "config/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace baton::config {
namespace {

Parsed<std::string> parse_stripped_field(std::string_view text) {
  if (text.empty()) return std::unexpected("is empty; name a member of the body, or remove it");
  for (const std::string_view needed : {"model", "messages", "prompt", "stream"}) {
    if (text == needed)
      return std::unexpected(fmt::format("{} cannot be stripped: every request needs it", text));
  }
  return std::string(text);
}

Parsed<std::string> parse_stripped_header(std::string_view text) {
  const std::string_view name = text.ends_with('*') ? text.substr(0, text.size() - 1) : text;
  const bool sound = !name.empty() && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
  });
  if (!sound)
    return std::unexpected(fmt::format(
        "{} is not the name of a header; write letters, digits and -, with a * at the end for all "
        "that begin so",
        shown(text)));
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

template <class Parse>
std::vector<std::string> read_names(const Section& section, const std::string& key, Parse parse,
                                    Problems& problems) {
  std::vector<std::string> names;
  const std::vector<Node>& nodes = section.list(key);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", key, i);
    if (auto one = Section::read_scalar(nodes[i], at, parse, problems))
      names.push_back(*std::move(one));
  }
  return names;
}

Parsed<std::string> read_auth_key(std::string_view path) {
  auto text = read_secret_file(std::string(path));
  if (!text) return text;
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->empty()) return std::unexpected("names a file without a key; write one into it");
  return text;
}

Parsed<model::SignedPart> parse_signed_part(std::string_view text) {
  if (text == "fields") return model::SignedPart::Fields;
  if (text == "params") return model::SignedPart::Params;
  return std::unexpected(fmt::format("unknown {}; write fields or params", shown(text)));
}

}  // namespace

std::vector<std::string> read_stripped_fields(const Section& root, Problems& problems) {
  return read_names(root, "strip_client_fields", parse_stripped_field, problems);
}

std::vector<std::string> read_stripped_headers(const Section& root, Problems& problems) {
  return read_names(root, "strip_client_headers", parse_stripped_header, problems);
}

void read_trtllm_auth(const Section& root, model::TrtllmAuth& auth) {
  const Section section = root.section("trtllm");
  section.read("auth_key_file", auth.key, read_auth_key);
  section.read("auth_payload", auth.part, parse_signed_part);
}

}  // namespace baton::config
