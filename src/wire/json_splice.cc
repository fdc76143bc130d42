// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_object.h"

#include <algorithm>
#include <utility>

namespace baton::wire {

std::size_t SplicedBody::size() const {
  std::size_t total = 0;
  for (const auto piece : pieces_) total += piece.size();
  return total;
}

std::string SplicedBody::joined() const {
  std::string out;
  out.reserve(size());
  for (const auto piece : pieces_) out += piece;
  return out;
}

SplicedBody::SplicedBody(SplicedBody&& other) noexcept { *this = std::move(other); }

SplicedBody& SplicedBody::operator=(SplicedBody&& other) noexcept {
  if (this == &other) return *this;
  const char* const old = other.added_.data();
  added_ = std::move(other.added_);
  pieces_ = std::exchange(other.pieces_, {});
  for (auto& piece : pieces_) {
    if (piece.data() == old) piece = added_;
  }
  return *this;
}

void SplicedBody::append(std::string_view text) {
  if (text.empty()) return;
  if (!pieces_.empty() && pieces_.back().data() + pieces_.back().size() == text.data()) {
    pieces_.back() = {pieces_.back().data(), pieces_.back().size() + text.size()};
  } else {
    pieces_.push_back(text);
  }
}

JsonSplice& JsonSplice::remove(std::string_view key) {
  if (std::ranges::find(removed_, key) == removed_.end()) removed_.emplace_back(key);
  std::erase_if(added_, [&](const auto& member) { return member.first == key; });
  return *this;
}

JsonSplice& JsonSplice::set(std::string_view key, std::string_view json) {
  remove(key);
  added_.emplace_back(key, json);
  return *this;
}

bool JsonSplice::keeps(const JsonObject::Member& member) const {
  return std::ranges::none_of(
      removed_, [&](const std::string& key) { return JsonObject::names(member, key); });
}

SplicedBody JsonSplice::build() const {
  const std::string_view text = object_.text_;
  const auto& members = object_.members_;
  const auto range = [text](std::size_t from, std::size_t to) {
    return text.substr(from, to - from);
  };

  // A removed member takes the separator behind it along.
  SplicedBody body;
  std::size_t from = 0;
  const JsonObject::Member* last_kept = nullptr;
  for (const auto& member : members) {
    if (!keeps(member)) continue;
    if (last_kept == nullptr) {
      body.append(range(0, members.front().begin));
    } else {
      body.append(range(from, (last_kept + 1)->begin));
    }
    from = member.begin;
    last_kept = &member;
  }

  // What is added follows the last member kept; members removed behind that one take the separator
  // in front of them along.
  const std::size_t inside = text.find('{') + 1;
  const std::size_t tail = members.empty() ? inside : members.back().end;
  if (last_kept != nullptr) {
    body.append(range(from, last_kept->end));
  } else {
    body.append(range(0, members.empty() ? inside : members.front().begin));
  }
  std::size_t added = 0;
  for (const auto& [key, json] : added_) added += key.size() + json.size() + 4;
  body.added_.reserve(added);
  for (const auto& [key, json] : added_) {
    if (last_kept != nullptr || !body.added_.empty()) body.added_ += ',';
    body.added_.append("\"").append(key).append("\":").append(json);
  }
  if (!body.added_.empty()) body.pieces_.push_back(body.added_);
  body.append(range(tail, text.size()));
  return body;
}

}  // namespace baton::wire
