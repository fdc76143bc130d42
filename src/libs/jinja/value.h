// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/error.h"
#include "libs/jinja/shared_text.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::jinja {

class Dict;
class Value;
using List = std::vector<Value>;

// Containers may nest this deep; a deeper one is refused where it is made.
inline constexpr std::size_t kMaxNesting = 500;

// The type of a value in Python's terms. The kinds after Dict exist only inside a rendering.
enum class Kind : std::uint8_t {
  Undefined,
  None,
  Bool,
  Int,
  Float,
  BigInt,  // an integer beyond 64 bits: its digits, which can be printed but not computed with
  String,
  List,
  Tuple,
  Dict,
  DictView,  // dict.keys(), .values(), .items()
  Range,
  Iterator,  // what map, select and their like give: can be walked once
  Namespace,
  Function,  // macros, methods, globals
  Loop,
  Cycler,
  Joiner,
};

// Role. One value of a template: a Python object as far as chat templates can tell.
// Confinement. Any thread: payloads are immutable and counted atomically (namespaces and their like
//   are confined to the rendering that made them).
// Invariants. Copies are cheap and share the payload. A default value is undefined, not None.
class Value {
 public:
  Value() noexcept : int_(0) {}
  static Value none() noexcept {
    Value value;
    value.kind_ = Kind::None;
    return value;
  }
  template <std::same_as<bool> Boolean>
  Value(Boolean value) noexcept : kind_(Kind::Bool), int_(value ? 1 : 0) {}
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool> && !std::same_as<Integer, char>)
  Value(Integer value) noexcept : kind_(Kind::Int), int_(static_cast<std::int64_t>(value)) {}
  Value(double value) noexcept : kind_(Kind::Float), float_(value) {}
  // Text must be UTF-8. A long std::string is kept as it is, without a copy.
  Value(std::string text);
  Value(std::string_view text);
  Value(const char* text) : Value(std::string_view(text)) {}
  // Requires: nothing nested deeper than kMaxNesting.
  Value(List items);
  Value(Dict entries);
  static Value tuple(List items);
  static Value big_integer(std::string digits);

  Value(const Value& other) noexcept
      : kind_(other.kind_), flag_(other.flag_), extra_(other.extra_), int_(other.int_) {
    retain();
  }
  Value(Value&& other) noexcept
      : kind_(other.kind_), flag_(other.flag_), extra_(other.extra_), int_(other.int_) {
    other.kind_ = Kind::Undefined;
    other.flag_ = 0;
    other.int_ = 0;
  }
  Value& operator=(Value other) noexcept {
    swap(other);
    return *this;
  }
  ~Value() { release(); }
  void swap(Value& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(flag_, other.flag_);
    std::swap(extra_, other.extra_);
    std::swap(int_, other.int_);
  }

  Kind kind() const { return kind_; }
  bool is_undefined() const { return kind_ == Kind::Undefined; }
  bool is_none() const { return kind_ == Kind::None; }
  bool is_string() const { return kind_ == Kind::String; }
  bool is_list() const { return kind_ == Kind::List; }
  bool is_dict() const { return kind_ == Kind::Dict; }

  // Requires: the kind that the name says.
  bool as_bool() const { return int_ != 0; }
  std::int64_t as_int() const { return int_; }  // also of a Bool
  double as_float() const { return float_; }
  std::string_view as_string() const { return text().view(); }  // also the digits of a BigInt
  const List& as_list() const;                                  // also of a Tuple
  const Dict& as_dict() const;

  // For the interpreter.
  explicit Value(Kind kind, Ref<Object> object) noexcept
      : kind_(kind), object_(std::move(object).detach()) {}
  static Value text(Ref<Text> text) noexcept;
  // Result of a look-up that found nothing; it remembers the name and the kind of object.
  static Value missing(Ref<Text> name) noexcept;
  static Value missing(const Value& key, Kind owner);
  static Value missing_because(std::string hint);
  bool is_unset() const { return kind_ == Kind::Undefined && flag_ == 0; }
  const Text& text() const { return *static_cast<const Text*>(object_); }
  Object* object() const { return object_; }
  // `safe` text: escaping leaves it alone, and joining it escapes the rest (markupsafe's Markup).
  bool is_markup() const { return kind_ == Kind::String && flag_ == 1; }
  Value as_markup() const {
    Value value(*this);
    value.flag_ = 1;
    return value;
  }
  // How deep the containers in it are nested; 0 for what is no container.
  std::size_t nesting() const;
  // "'x' is undefined" and its like, in Jinja's words. Requires: is_undefined().
  std::string undefined_message() const;

 private:
  void retain() const noexcept {
    if (kind_ >= Kind::BigInt || flag_ != 0) object_->retain();
  }
  void release() noexcept {
    if (kind_ >= Kind::BigInt || flag_ != 0) object_->release();
  }

  Kind kind_ = Kind::Undefined;
  std::uint8_t flag_ = 0;    // of a string: markup; of an undefined value: it holds a text
  std::uint16_t extra_ = 0;  // of an undefined value: what the text is
  union {
    std::int64_t int_;
    double float_;
    Object* object_;
  };
};

// Role. An ordered map as Python's dict: keys in the order of their first insertion.
// Invariants. Keys are unique in Python's sense (1, 1.0 and True are one key).
class Dict {
 public:
  struct Entry {
    Value key;
    Value value;
  };

  Dict() = default;
  // A key that is there keeps its place and gets the new value.
  template <std::convertible_to<std::string_view> Key>
  void set(const Key& key, Value value) {
    set_text(key, std::move(value));
  }
  void set(Value key, Value value);
  // Null where there is none.
  template <std::convertible_to<std::string_view> Key>
  const Value* find(const Key& key) const {
    return find_text(key);
  }
  const Value* find(const Value& key) const;
  void reserve(std::size_t size) { entries_.reserve(size); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  void set_text(std::string_view key, Value value);
  const Value* find_text(std::string_view key) const;
  std::size_t text_position(std::string_view key) const;
  std::size_t position(const Value& key) const;
  void append(Value key, Value value);

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> buckets_;  // open addressing, 1 + place; empty while a scan is quicker
};

// Any JSON text as a value, as Python's json.loads reads it: of a repeated key the last value wins
// in the place of the first, integers of any length keep their digits. Text that is not JSON, or is
// nested deeper than kMaxNesting, is an InvalidJson.
Result<Value> value_from_json(std::string_view json);
// The same for a text that is known to be valid JSON and that outlives the value, which points to
// strings in it.
Result<Value> value_within_json(std::string_view json);

}  // namespace baton::jinja
