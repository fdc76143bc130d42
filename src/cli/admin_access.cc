// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "cli/admin_access.h"

#include "config/values.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cctype>
#include <fstream>
#include <utility>

namespace baton::cli {
namespace {

using Json = nlohmann::json;

constexpr int kFirstRefusal = 300;

Result<model::Endpoint> read_address(const std::string& text) {
  const std::string url = text.find("://") == std::string::npos ? "http://" + text : text;
  auto endpoint = config::parse_worker_url(url);
  if (endpoint) return *std::move(endpoint);
  return fail(Errc::InvalidRequest, fmt::format("--admin: {}", endpoint.error()));
}

// The first line that is not empty and no comment, as in the router's own files of keys.
Result<std::string> read_key(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && line.front() != '#') return line;
  }
  return fail(Errc::InvalidRequest, fmt::format("--key-file: there is no key in {}", path));
}

std::string refusal_in(const AdminClient::Answer& answer) {
  const Json json = Json::parse(answer.body, nullptr, false);
  const auto pointer = Json::json_pointer("/error/message");
  if (json.is_object() && json.contains(pointer) && json[pointer].is_string()) return json[pointer];
  return fmt::format("the router answered {}", answer.status);
}

}  // namespace

void add_admin_flags(CLI::App& command, AdminAccess& access) {
  command.add_option("--admin", access.admin, "The router's admin address")
      ->envname("BATON_ADMIN")
      ->capture_default_str();
  command.add_option("--key-file", access.key_file,
                     "File with a key of the router's admin_keys, where it has any");
}

Result<AdminClient> client_of(const AdminAccess& access) {
  auto address = read_address(access.admin);
  if (!address) return fail(std::move(address.error()));
  auto key = read_key(access.key_file);
  if (!key) return fail(std::move(key.error()));
  return AdminClient(*std::move(address), *std::move(key));
}

Result<std::string> body_of(Result<AdminClient::Answer> answer) {
  if (!answer) return fail(std::move(answer.error()));
  if (answer->status >= kFirstRefusal) return fail(Errc::InvalidRequest, refusal_in(*answer));
  return std::move(answer->body);
}

std::string percent_encoded(std::string_view name) {
  std::string encoded;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    const bool safe = std::isalnum(byte) != 0 || std::string_view("-._~:").contains(c);
    encoded += safe ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return encoded;
}

}  // namespace baton::cli
