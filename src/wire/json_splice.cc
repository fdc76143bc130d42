// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/json_object.h"

#include <algorithm>
#include <functional>
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
  const char* const old_end = old + other.added_.size();
  added_ = std::move(other.added_);
  pieces_ = std::exchange(other.pieces_, {});
  for (auto& piece : pieces_) {
    const bool ours = std::less_equal{}(old, piece.data()) && std::less{}(piece.data(), old_end);
    if (ours) piece = {added_.data() + (piece.data() - old), piece.size()};
  }
  return *this;
}

// Extends the last piece if the range follows it in the same text.
void SplicedBody::append(std::string_view source, std::size_t from, std::size_t to) {
  if (from == to) return;
  const char* const begin = source.data() + from;
  if (from > 0 && !pieces_.empty() && pieces_.back().data() + pieces_.back().size() == begin) {
    pieces_.back() = {pieces_.back().data(), pieces_.back().size() + to - from};
  } else {
    pieces_.emplace_back(begin, to - from);
  }
}

JsonSplice& JsonSplice::remove(std::string_view key) {
  // Most keys that must not be there are not.
  if (object_.has(key) && std::ranges::find(removed_, key) == removed_.end())
    removed_.emplace_back(key);
  std::erase_if(added_, [&](const Added& member) { return member.key == key; });
  return *this;
}

JsonSplice& JsonSplice::set(std::string_view key, std::string_view json) {
  return set_long(key, json, {}, {});
}

JsonSplice& JsonSplice::set_long(std::string_view key, std::string_view before,
                                 std::string_view text, std::string_view after) {
  remove(key);
  added_.emplace_back(std::string(key), std::string(before), text, std::string(after));
  return *this;
}

bool JsonSplice::keeps(const JsonObject::Member& member) const {
  return std::ranges::none_of(removed_, [&](const std::string& key) { return member.name == key; });
}

SplicedBody JsonSplice::build() const {
  const std::string_view text = object_.text_;
  const auto& members = object_.members_;
  // A removed member takes the separator behind it along.
  SplicedBody body;
  std::size_t from = 0;
  const JsonObject::Member* last_kept = nullptr;
  for (const auto& member : members) {
    if (!keeps(member)) continue;
    if (last_kept == nullptr) {
      body.append(text, 0, members.front().begin);
    } else {
      body.append(text, from, (last_kept + 1)->begin);
    }
    from = member.begin;
    last_kept = &member;
  }

  // Added members follow the last member kept; members removed behind that one take the separator
  // in front of them along.
  const std::size_t inside = text.find('{') + 1;
  const std::size_t tail = members.empty() ? inside : members.back().end;
  if (last_kept != nullptr) {
    body.append(text, from, last_kept->end);
  } else {
    body.append(text, 0, members.empty() ? inside : members.front().begin);
  }
  std::size_t room = 0;
  for (const Added& one : added_) room += one.key.size() + one.before.size() + one.after.size() + 4;
  body.added_.reserve(room);  // pieces point into it
  bool first = last_kept == nullptr;
  for (const Added& one : added_) {
    const std::size_t begin = body.added_.size();
    if (!std::exchange(first, false)) body.added_ += ',';
    body.added_.append("\"").append(one.key).append("\":").append(one.before);
    body.append(body.added_, begin, body.added_.size());
    body.append(one.text, 0, one.text.size());
    const std::size_t rest = body.added_.size();
    body.added_ += one.after;
    body.append(body.added_, rest, body.added_.size());
  }
  body.append(text, tail, text.size());
  return body;
}

}  // namespace baton::wire
