// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "tools/sim/request_log.h"

#include "libs/base64/base64.h"

#include <nlohmann/json.hpp>

namespace baton::sim {
namespace {

using nlohmann::json;

constexpr std::size_t kEntries = 64;

bool is_utf8(const std::string& text) {
  try {
    (void)json(text).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

}  // namespace

std::uint64_t RequestLog::add(const HttpRequest& request, Phase phase) {
  if (entries_.size() == kEntries) {
    entries_.pop_front();
    ++first_;
  }
  entries_.push_back({request.path, phase, request.headers, request.body, std::nullopt});
  return first_ + entries_.size() - 1;
}

void RequestLog::set_rank(std::uint64_t number, std::uint32_t rank) {
  if (number >= first_) entries_[number - first_].rank = rank;
}

json RequestLog::list() const {
  json out = json::array();
  for (const Entry& entry : entries_) {
    json headers = json::object();
    for (const auto& [name, value] : entry.headers) {
      headers[name] = is_utf8(value) ? value : base64::encode(value);
    }
    out.push_back({{"path", entry.path},
                   {"phase", to_string(entry.phase)},
                   {"rank", entry.rank ? json(*entry.rank) : json(nullptr)},
                   {"headers", std::move(headers)},
                   {"body", is_utf8(entry.body) ? entry.body : base64::encode(entry.body)}});
  }
  return out;
}

}  // namespace baton::sim
