// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/cursor.h"

#include "libs/jinja/failure.h"
#include "libs/jinja/loop.h"
#include "libs/jinja/objects.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/unicode.h"

#include <utility>

namespace baton::jinja {
namespace {

Value view_item(Run& run, const DictViewObject& view, std::size_t index) {
  const auto& entry = view.dict.as_dict().entries()[index];
  switch (view.part) {
    case DictViewObject::Part::Keys:
      return entry.key;
    case DictViewObject::Part::Values:
      return entry.value;
    case DictViewObject::Part::Items:
      return run.tuple({entry.key, entry.value});
  }
  return Value();
}

}  // namespace

bool Cursor::walks(const Value& value) {
  switch (value.kind()) {
    case Kind::Undefined:
    case Kind::String:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Dict:
    case Kind::DictView:
    case Kind::Range:
    case Kind::Iterator:
    case Kind::Loop:
      return true;
    default:
      return false;
  }
}

Cursor::Cursor(Run& run, Value over) : run_(run), over_(std::move(over)) {
  if (!walks(over_)) raise("'{}' object is not iterable", type_name(over_));
}

bool Cursor::next(Value& item) {
  run_.step();
  switch (over_.kind()) {
    case Kind::List:
    case Kind::Tuple: {
      const List& items = over_.as_list();
      if (position_ == items.size()) return false;
      item = items[position_++];
      return true;
    }
    case Kind::Dict: {
      const auto& entries = over_.as_dict().entries();
      if (position_ == entries.size()) return false;
      item = entries[position_++].key;
      return true;
    }
    case Kind::DictView: {
      const auto& view = object_as<DictViewObject>(over_);
      if (position_ == view.dict.as_dict().size()) return false;
      item = view_item(run_, view, position_++);
      return true;
    }
    case Kind::String: {
      std::string_view rest = over_.as_string().substr(position_);
      if (rest.empty()) return false;
      const std::string_view before = rest;
      take_code_point(rest);
      item = run_.text(std::string(before.substr(0, before.size() - rest.size())));
      position_ += before.size() - rest.size();
      return true;
    }
    case Kind::Range: {
      const auto& range = object_as<RangeObject>(over_);
      if (static_cast<std::int64_t>(position_) == range.size()) return false;
      item = Value(range.at(static_cast<std::int64_t>(position_++)));
      return true;
    }
    case Kind::Iterator: {
      auto& iterator = object_as<IteratorObject>(over_);
      if (iterator.next == iterator.items.size()) return false;
      item = iterator.items[iterator.next++];
      return true;
    }
    case Kind::Loop: {
      auto& loop = object_as<LoopObject>(over_);
      if (!loop.advance()) return false;
      item = run_.tuple({loop.current(), over_});
      return true;
    }
    default:
      return false;
  }
}

List to_list(Run& run, const Value& iterable) {
  if (iterable.is_list() || iterable.kind() == Kind::Tuple) return iterable.as_list();
  List items;
  Cursor cursor(run, iterable);
  Value item;
  while (cursor.next(item)) items.push_back(std::move(item));
  return items;
}

}  // namespace baton::jinja
