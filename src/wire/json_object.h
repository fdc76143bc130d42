// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/memory_budget.h"
#include "core/result.h"
#include "libs/scan/json_escape.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::wire {

// Role. The top-level members of a JSON object, as ranges of the text they came in. The whole text
//   is validated; only the top level is looked at.
// Confinement. Immutable; any thread.
// Lifetime. The text must outlive it.
// Invariants. Keys are compared unescaped ("\u006dodel" is "model"), and unescaped once; of repeated
//   keys the last one counts, as in the engines. Never more than kMostMembers, so that a look-up is
//   cheap whatever was sent.
class JsonObject {
 public:
  // Ten times the members of the largest document of an engine.
  static constexpr std::size_t kMostMembers = 4096;

  // An error where there are more members. `memory` has what parsing takes of a text that is not sure
  // to be valid at the first look; null: that is not counted.
  static Result<JsonObject> parse(std::string_view text, MemoryShare* memory = nullptr);
  // The same for a part of a text that was validated already; nullopt where it is no object, or one
  // of more members. Requires: valid JSON, not empty.
  static std::optional<JsonObject> within(std::string_view text);

  std::string_view text() const { return text_; }
  bool has(std::string_view key) const { return find(key).has_value(); }
  // The raw text of the value.
  std::optional<std::string_view> find(std::string_view key) const;

  // Calls `visit(key, value)` for every member in turn, with their raw texts.
  template <class Visit>
  void each(Visit visit) const {
    for (const Member& member : members_)
      visit(raw_key(member), text_.substr(member.value, member.end - member.value));
  }

  // nullopt where the key is absent, or its value of another type.
  std::optional<JsonObject> find_object(std::string_view key) const;
  std::optional<std::string> find_string(std::string_view key) const;
  std::optional<bool> find_bool(std::string_view key) const;
  std::optional<std::int64_t> find_integer(std::string_view key) const;

 private:
  friend class JsonSplice;
  struct Member {
    std::string_view name;  // the key, unescaped
    std::size_t begin;      // opening quote of the key
    std::size_t value;
    std::size_t end;  // past the value
  };
  // Between its quotes, as sent.
  std::string_view raw_key(const Member& member) const {
    const std::size_t begin = member.begin + 1;
    return text_.substr(begin, text_.rfind('"', member.value - 1) - begin);
  }
  // False where there are too many.
  bool add_members(std::span<const std::uint32_t> structure);
  void unescape_names();

  std::string_view text_;
  std::vector<Member> members_;
  std::shared_ptr<const char[]> unescaped_;  // names that were escaped; most objects have none
};

// Role. A body made of pieces of the client's text, of long texts of ours, and of a few more bytes,
//   written without joining them.
// Confinement. One thread at a time.
// Lifetime. The client's text and the long ones must outlive it.
// Invariants. Pieces that lie in added_ would dangle after a copy, and after a plain move of a short
//   string.
class SplicedBody {
 public:
  SplicedBody() = default;
  SplicedBody(const SplicedBody&) = delete;
  SplicedBody& operator=(const SplicedBody&) = delete;
  SplicedBody(SplicedBody&& other) noexcept;
  SplicedBody& operator=(SplicedBody&& other) noexcept;

  const std::vector<std::string_view>& pieces() const { return pieces_; }
  std::size_t size() const;
  std::string joined() const;

 private:
  friend class JsonSplice;
  void append(std::string_view source, std::size_t from, std::size_t to);

  std::string added_;
  std::vector<std::string_view> pieces_;
};

// Role. Removes members of an object and adds members behind the last one kept; every other byte
//   stays as it was.
// Confinement. One thread.
// Lifetime. The object must outlive it; what it builds needs the object's text and the long texts.
class JsonSplice {
 public:
  explicit JsonSplice(const JsonObject& object) : object_(object) {}

  // Every occurrence goes, one that was set before too. No effect where there is none.
  JsonSplice& remove(std::string_view key);
  // Replaces every occurrence. `json` must be valid JSON; `key` must need no escaping.
  JsonSplice& set(std::string_view key, std::string_view json);
  // The same for `before`, `text` and `after` together. `text` is long: it is not copied, and must
  // outlive what is built.
  JsonSplice& set_long(std::string_view key, std::string_view before, std::string_view text,
                       std::string_view after);
  SplicedBody build() const;

 private:
  struct Added {
    std::string key;
    std::string before;
    std::string_view text;
    std::string after;
  };
  bool keeps(const JsonObject::Member& member) const;

  const JsonObject& object_;
  std::vector<std::string> removed_;
  std::vector<Added> added_;
};

using scan::json_quote;

}  // namespace baton::wire
