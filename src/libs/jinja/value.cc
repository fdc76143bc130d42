// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/value.h"

#include "libs/jinja/objects.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"

#include <fmt/format.h>

#include <array>
#include <bit>

namespace baton::jinja {
namespace {

// Meaning of an undefined value's text.
constexpr std::uint16_t kName = 0;
constexpr std::uint16_t kHint = 1;
constexpr std::uint16_t kAttribute = 2;  // plus 4 times the kind of the owner
constexpr std::uint16_t kElement = 3;    // the same

// Up to here a scan over the entries beats hashing the key.
constexpr std::size_t kScanned = 12;
constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

// Role. Words that conversations are full of, made once for all of them.
// Confinement. Immutable; any thread.
class CommonWords {
 public:
  // Null where it is none of them.
  static Text* find(std::string_view text) {
    static const CommonWords words;
    if (text.size() < 2) return nullptr;
    Text* const word = words.table_[place_of(text)];
    return word != nullptr && word->view() == text ? word : nullptr;
  }

 private:
  static constexpr std::string_view kWords[] = {
      "role",       "content",    "user",         "assistant",  "system",      "tool",
      "developer",  "type",       "text",         "function",   "name",        "id",
      "arguments",  "tool_calls", "tool_call_id", "parameters", "description", "string",
      "properties", "required",   "object"};
  static constexpr std::size_t kPlaces = 64;

  CommonWords() {
    for (const std::string_view word : kWords) {
      Text*& place = table_[place_of(word)];
      place = make<Text>(std::string(word)).detach();
      place->keep_for_ever();
    }
  }
  // Found by trying: no two of the words meet.
  static std::size_t place_of(std::string_view text) {
    const auto second = static_cast<unsigned char>(text[1]);
    const auto last = static_cast<unsigned char>(text.back());
    return (second + last * 2U + text.size() * 9) % kPlaces;
  }

  std::array<Text*, kPlaces> table_ = {};
};

Object* shared_or_new(std::string_view text) {
  if (Text* const word = CommonWords::find(text)) return word;
  return make<Text>(std::string(text)).detach();
}

}  // namespace

Value::Value(std::string text)
    : kind_(Kind::String), object_(make<Text>(std::move(text)).detach()) {}
Value::Value(std::string_view text) : kind_(Kind::String), object_(shared_or_new(text)) {}
Value::Value(List items)
    : kind_(Kind::List), object_(make<ListObject>(std::move(items)).detach()) {}
Value::Value(Dict entries)
    : kind_(Kind::Dict), object_(make<DictObject>(std::move(entries)).detach()) {}

Value Value::tuple(List items) { return Value(Kind::Tuple, make<ListObject>(std::move(items))); }
Value Value::big_integer(std::string digits) {
  return Value(Kind::BigInt, make<Text>(std::move(digits)));
}
Value Value::text(Ref<Text> text) noexcept { return Value(Kind::String, std::move(text)); }

const List& Value::as_list() const { return object_as<ListObject>(*this).items; }
const Dict& Value::as_dict() const { return object_as<DictObject>(*this).entries; }

std::size_t Value::nesting() const { return kind_ >= Kind::BigInt ? object_->nesting() : 0; }

Value Value::missing(Ref<Text> name) noexcept {
  Value value(Kind::Undefined, std::move(name));
  value.flag_ = 1;
  value.extra_ = kName;
  return value;
}

Value Value::missing(const Value& key, Kind owner) {
  const bool attribute = key.is_string();
  auto text = attribute ? Ref<Text>::share(static_cast<Text*>(key.object_)) : make<Text>(repr(key));
  Value value = missing(std::move(text));
  value.extra_ = static_cast<std::uint16_t>((attribute ? kAttribute : kElement) +
                                            4U * static_cast<unsigned>(owner));
  return value;
}

Value Value::missing_because(std::string hint) {
  Value value = missing(make<Text>(std::move(hint)));
  value.extra_ = kHint;
  return value;
}

std::string Value::undefined_message() const {
  if (flag_ == 0) return "an undefined value was used";
  const std::string_view about = text().view();
  const auto owner = static_cast<Kind>(extra_ / 4);
  switch (extra_ % 4) {
    case kName:
      return fmt::format("{} is undefined", in_quotes(about));
    case kHint:
      return std::string(about);
    case kAttribute:
      return fmt::format("{} has no attribute {}", in_quotes(object_type(owner)), in_quotes(about));
    default:
      return fmt::format("{} has no element {}", object_type(owner), about);
  }
}

DictObject::DictObject(Dict dict)
    : Object([&] {
        std::size_t deepest = 0;
        for (const auto& entry : dict) {
          deepest = std::max({deepest, entry.key.nesting(), entry.value.nesting()});
        }
        return static_cast<std::uint32_t>(deepest + 1);
      }()),
      entries(std::move(dict)) {}

std::int64_t RangeObject::size() const {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const auto distance = step > 0
                            ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                            : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const auto stride =
      step > 0 ? static_cast<std::uint64_t>(step) : -static_cast<std::uint64_t>(step);
  return static_cast<std::int64_t>((distance - 1) / stride + 1);
}

const Value* Dict::find_text(std::string_view key) const {
  const std::size_t at = text_position(key);
  return at == kNowhere ? nullptr : &entries_[at].value;
}

const Value* Dict::find(const Value& key) const {
  const std::size_t at = position(key);
  return at == kNowhere ? nullptr : &entries_[at].value;
}

void Dict::set_text(std::string_view key, Value value) {
  const std::size_t at = text_position(key);
  if (at != kNowhere) {
    entries_[at].value = std::move(value);
  } else {
    append(Value(key), std::move(value));
  }
}

void Dict::set(Value key, Value value) {
  const std::size_t at = position(key);
  if (at != kNowhere) {
    entries_[at].value = std::move(value);
  } else {
    append(std::move(key), std::move(value));
  }
}

std::size_t Dict::text_position(std::string_view key) const {
  if (buckets_.empty()) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Value& candidate = entries_[i].key;
      if (candidate.is_string() && same_text(candidate.as_string(), key)) return i;
    }
    return kNowhere;
  }
  const std::size_t mask = buckets_.size() - 1;
  for (std::size_t at = hash_text(key) & mask; buckets_[at] != 0; at = (at + 1) & mask) {
    const Value& candidate = entries_[buckets_[at] - 1].key;
    if (candidate.is_string() && same_text(candidate.as_string(), key)) return buckets_[at] - 1;
  }
  return kNowhere;
}

std::size_t Dict::position(const Value& key) const {
  if (key.is_string()) return text_position(key.as_string());
  if (buckets_.empty()) {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (equal(entries_[i].key, key)) return i;
    }
    return kNowhere;
  }
  const std::size_t mask = buckets_.size() - 1;
  for (std::size_t at = hash_value(key) & mask; buckets_[at] != 0; at = (at + 1) & mask) {
    if (equal(entries_[buckets_[at] - 1].key, key)) return buckets_[at] - 1;
  }
  return kNowhere;
}

void Dict::append(Value key, Value value) {
  entries_.push_back({.key = std::move(key), .value = std::move(value)});
  if (entries_.size() <= kScanned) return;
  const auto place = [&](std::size_t index) {
    const Value& of = entries_[index].key;
    const std::size_t hash = of.is_string() ? hash_text(of.as_string()) : hash_value(of);
    const std::size_t mask = buckets_.size() - 1;
    std::size_t at = hash & mask;
    while (buckets_[at] != 0) at = (at + 1) & mask;
    buckets_[at] = static_cast<std::uint32_t>(index + 1);
  };
  if (entries_.size() * 2 > buckets_.size()) {
    buckets_.assign(std::bit_ceil(entries_.size() * 4), 0);
    for (std::size_t i = 0; i < entries_.size(); ++i) place(i);
  } else {
    place(entries_.size() - 1);
  }
}

}  // namespace baton::jinja
