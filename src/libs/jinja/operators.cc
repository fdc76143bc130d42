// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/operators.h"

#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/objects.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"

#define XXH_INLINE_ALL
#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <ranges>
#include <string>
#include <xxhash.h>

namespace baton::jinja {
namespace {

// Lists that hold the same list many times take exponential time to walk through; Python would too.
class Budget {
 public:
  void spend() {
    if (--left_ == 0) raise("values are too large to be compared");
  }

 private:
  std::size_t left_ = 1'000'000;
};

// Bounds of the part of a nested tuple that is hashed.
constexpr int kHashedDepth = 4;
constexpr std::size_t kHashedItems = 8;

bool equal_within(const Value& a, const Value& b, Budget& budget);

bool same_items(const List& a, const List& b, Budget& budget) {
  return a.size() == b.size() && std::ranges::equal(a, b, [&](const Value& x, const Value& y) {
           return equal_within(x, y, budget);
         });
}

bool same_entries(const Dict& a, const Dict& b, Budget& budget) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const Dict::Entry& entry) {
           const Value* other = b.find(entry.key);
           return other != nullptr && equal_within(entry.value, *other, budget);
         });
}

bool same_ranges(const RangeObject& a, const RangeObject& b) {
  const auto size = a.size();
  return size == b.size() && (size == 0 || (a.start == b.start && (size == 1 || a.step == b.step)));
}

std::partial_ordering order_numbers(const Value& a, const Value& b) {
  if (is_int_like(a) && is_int_like(b)) return a.as_int() <=> b.as_int();
  // A long double holds every 64-bit integer and every double.
  const auto wide = [](const Value& value) {
    if (value.kind() == Kind::BigInt) {
      return std::strtold(std::string(value.as_string()).c_str(), nullptr);
    }
    return is_int_like(value) ? static_cast<long double>(value.as_int())
                              : static_cast<long double>(value.as_float());
  };
  return wide(a) <=> wide(b);
}

// Whole numbers written out, of which at least one is too long to compute with.
std::strong_ordering order_digits(std::string_view a, std::string_view b) {
  const bool negative = a.starts_with('-');
  if (negative != b.starts_with('-')) {
    return negative ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  const auto order = a.size() != b.size() ? a.size() <=> b.size() : a <=> b;
  return negative ? 0 <=> order : order;
}

bool equal_within(const Value& a, const Value& b, Budget& budget) {
  budget.spend();
  if (is_number(a) && is_number(b)) return order_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::Undefined:
    case Kind::None:
      return true;
    case Kind::String:
    case Kind::BigInt:
      return same_text(a.as_string(), b.as_string());
    case Kind::List:
    case Kind::Tuple:
      return a.object() == b.object() || same_items(a.as_list(), b.as_list(), budget);
    case Kind::Dict:
      return a.object() == b.object() || same_entries(a.as_dict(), b.as_dict(), budget);
    case Kind::Range:
      return same_ranges(object_as<RangeObject>(a), object_as<RangeObject>(b));
    default:
      return a.object() == b.object();
  }
}

std::string_view symbol(Comparison how) {
  switch (how) {
    case Comparison::Less:
      return "<";
    case Comparison::LessEqual:
      return "<=";
    case Comparison::Greater:
      return ">";
    default:
      return ">=";
  }
}

bool holds(Comparison how, std::partial_ordering order) {
  switch (how) {
    case Comparison::Less:
      return order < 0;
    case Comparison::LessEqual:
      return order <= 0;
    case Comparison::Greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool compare_items(Comparison how, const List& a, const List& b) {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (!equal(a[i], b[i])) return compare(how, a[i], b[i]);
  }
  return holds(how, a.size() <=> b.size());
}

std::size_t hash_within(const Value& value, int depth) {
  switch (value.kind()) {
    case Kind::Bool:
    case Kind::Int:
      return std::hash<std::int64_t>()(value.as_int());
    case Kind::Float: {
      const double number = value.as_float();
      if (std::abs(number) < 9e18 && number == std::floor(number)) {
        return std::hash<std::int64_t>()(static_cast<std::int64_t>(number));
      }
      return std::hash<double>()(number);
    }
    case Kind::String:
    case Kind::BigInt:
      return hash_text(value.as_string());
    case Kind::Tuple: {
      std::size_t hash = 7;
      if (depth == kHashedDepth) return hash;
      for (const Value& item : value.as_list() | std::views::take(kHashedItems)) {
        hash = hash * 1000003 ^ hash_within(item, depth + 1);
      }
      return hash;
    }
    case Kind::Undefined:
    case Kind::None:
    case Kind::Range:
      return 1;
    default:
      return std::hash<const void*>()(value.object());
  }
}

void require_hashable_within(const Value& value, Budget& budget) {
  budget.spend();
  if (value.kind() == Kind::Tuple) {
    for (const Value& item : value.as_list()) require_hashable_within(item, budget);
  } else if (value.is_list() || value.is_dict() || value.kind() == Kind::DictView) {
    raise("unhashable type: '{}'", type_name(value));
  }
}

}  // namespace

bool is_int_like(const Value& value) {
  return value.kind() == Kind::Int || value.kind() == Kind::Bool;
}

bool is_number(const Value& value) { return is_int_like(value) || value.kind() == Kind::Float; }

double number_as_float(const Value& value) {
  if (value.kind() == Kind::BigInt) {
    return std::strtod(std::string(value.as_string()).c_str(), nullptr);
  }
  return value.kind() == Kind::Float ? value.as_float() : static_cast<double>(value.as_int());
}

std::int64_t require_int(const Value& value) {
  if (is_int_like(value)) return value.as_int();
  if (value.is_undefined()) raise("{}", value.undefined_message());
  raise("'{}' object cannot be interpreted as an integer", type_name(value));
}

std::string_view require_text(const Value& value) {
  if (value.is_string()) return value.as_string();
  raise("must be str, not {}", type_name(value));
}

bool truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
    case Kind::None:
      return false;
    case Kind::Bool:
    case Kind::Int:
      return value.as_int() != 0;
    case Kind::Float:
      return value.as_float() != 0;
    case Kind::String:
      return !value.as_string().empty();
    case Kind::List:
    case Kind::Tuple:
      return !value.as_list().empty();
    case Kind::Dict:
      return !value.as_dict().empty();
    case Kind::DictView:
      return !object_as<DictViewObject>(value).dict.as_dict().empty();
    case Kind::Range:
      return object_as<RangeObject>(value).size() != 0;
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  Budget budget;
  return equal_within(a, b, budget);
}

bool compare(Comparison how, const Value& a, const Value& b) {
  if (how == Comparison::Equal) return equal(a, b);
  if (how == Comparison::NotEqual) return !equal(a, b);
  if (is_number(a) && is_number(b)) return holds(how, order_numbers(a, b));
  for (const Value* value : {&a, &b}) {
    if (value->is_undefined()) raise("{}", value->undefined_message());
  }
  const auto whole = [](const Value& value) {
    return is_int_like(value) || value.kind() == Kind::BigInt;
  };
  if (whole(a) && whole(b)) return holds(how, order_digits(str(a), str(b)));
  if ((whole(a) && b.kind() == Kind::Float) || (whole(b) && a.kind() == Kind::Float)) {
    return holds(how, order_numbers(a, b));
  }
  if (a.kind() == b.kind()) {
    if (a.is_string()) return holds(how, a.as_string() <=> b.as_string());
    if (a.kind() == Kind::List || a.kind() == Kind::Tuple) {
      return compare_items(how, a.as_list(), b.as_list());
    }
  }
  raise("'{}' not supported between instances of '{}' and '{}'", symbol(how), type_name(a),
        type_name(b));
}

bool contains(Run& run, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::String:
      if (item.is_undefined()) {
        raise("'in <string>' requires string as left operand, not Undefined");
      }
      if (!item.is_string()) {
        raise("'in <string>' requires string as left operand, not {}", type_name(item));
      }
      run.step(container.as_string().size() / 256);
      return memmem(container.as_string().data(), container.as_string().size(),
                    item.as_string().data(), item.as_string().size()) != nullptr;
    case Kind::Dict:
      require_hashable(item);
      return container.as_dict().find(item) != nullptr;
    case Kind::List:
    case Kind::Tuple:
      run.step(container.as_list().size() / 16);
      return std::ranges::any_of(container.as_list(),
                                 [&](const Value& each) { return equal(each, item); });
    default: {
      if (container.kind() == Kind::DictView &&
          object_as<DictViewObject>(container).part == DictViewObject::Part::Keys) {
        return contains(run, object_as<DictViewObject>(container).dict, item);
      }
      if (!Cursor::walks(container)) {
        raise("argument of type '{}' is not iterable", type_name(container));
      }
      Cursor cursor(run, container);
      Value each;
      while (cursor.next(each)) {
        if (equal(each, item)) return true;
      }
      return false;
    }
  }
}

std::size_t hash_text(std::string_view text) {
  // Requests choose the keys, so they must not know which of them collide.
  static const std::uint64_t kSeed = std::random_device()();
  return XXH3_64bits_withSeed(text.data(), text.size(), kSeed);
}

std::size_t hash_value(const Value& value) { return hash_within(value, 0); }

void require_hashable(const Value& value) {
  Budget budget;
  require_hashable_within(value, budget);
}

std::optional<std::size_t> length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
      return 0;
    case Kind::String:
      return value.text().length();
    case Kind::List:
    case Kind::Tuple:
      return value.as_list().size();
    case Kind::Dict:
      return value.as_dict().size();
    case Kind::DictView:
      return object_as<DictViewObject>(value).dict.as_dict().size();
    case Kind::Range:
      return static_cast<std::size_t>(object_as<RangeObject>(value).size());
    default:
      return std::nullopt;
  }
}

}  // namespace baton::jinja
