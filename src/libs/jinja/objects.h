// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::jinja {

class Run;
class Arguments;

inline std::uint32_t nesting_over(const List& items) {
  std::size_t deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, item.nesting());
  return static_cast<std::uint32_t>(deepest + 1);
}

struct ListObject final : Object {
  explicit ListObject(List list) : Object(nesting_over(list)), items(std::move(list)) {}
  const List items;
  bool group = false;  // a tuple that groupby made: .grouper and .list are its parts
};

struct DictObject final : Object {
  explicit DictObject(Dict dict);
  const Dict entries;
};

struct DictViewObject final : Object {
  enum class Part : std::uint8_t { Keys, Values, Items };
  DictViewObject(Value of, Part which)
      : Object(static_cast<std::uint32_t>(of.nesting() + 1)), dict(std::move(of)), part(which) {}
  const Value dict;
  const Part part;
};

struct RangeObject final : Object {
  RangeObject(std::int64_t from, std::int64_t to, std::int64_t by)
      : start(from), stop(to), step(by) {}
  std::int64_t size() const;
  // Wraps where no integer can tell it; a range that long is refused before it is walked.
  std::int64_t at(std::int64_t index) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                     static_cast<std::uint64_t>(index) *
                                         static_cast<std::uint64_t>(step));
  }
  const std::int64_t start, stop, step;
};

// Confinement. The rendering that made it, as all that follow.
struct IteratorObject final : Object {
  explicit IteratorObject(List list) : Object(nesting_over(list)), items(std::move(list)) {}
  const List items;
  std::size_t next = 0;
};

// Its attributes are cleared when the rendering ends, so that it may hold itself.
struct NamespaceObject final : Object {
  Dict attributes;
};

// Something a template can call.
struct FunctionObject : Object {
  using Object::Object;
  virtual Value call(Run& run, Arguments& arguments) const = 0;
  virtual std::string_view type_name() const { return "function"; }
  virtual std::string repr() const = 0;
};

struct CyclerObject final : Object {
  explicit CyclerObject(List list) : Object(nesting_over(list)), items(std::move(list)) {}
  const List items;
  std::size_t position = 0;
};

struct JoinerObject final : Object {
  explicit JoinerObject(Value between)
      : Object(static_cast<std::uint32_t>(between.nesting() + 1)), separator(std::move(between)) {}
  const Value separator;
  bool used = false;
};

template <class T>
T& object_as(const Value& value) {
  return *static_cast<T*>(value.object());
}

}  // namespace baton::jinja
