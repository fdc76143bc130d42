// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/attribute_path.h"
#include "libs/jinja/builtins.h"
#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/lookup.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"
#include "libs/jinja/sorting.h"

#include <algorithm>
#include <array>

namespace baton::jinja {
namespace {

Value first(Run& run, const Value& self, Arguments&) {
  Cursor cursor(run, self);
  Value item;
  return cursor.next(item) ? item : Value::missing_because("No first item, sequence was empty.");
}

Value last(Run& run, const Value& self, Arguments&) {
  if (!length_of(self)) {
    raise("'{}' object is not reversible", type_name(self));
  }
  const List items = to_list(run, self);
  return items.empty() ? Value::missing_because("No last item, sequence was empty.") : items.back();
}

Value length(Run&, const Value& self, Arguments&) {
  const auto size = length_of(self);
  if (!size) raise("object of type '{}' has no len()", type_name(self));
  return Value(static_cast<std::int64_t>(*size));
}

Value list(Run& run, const Value& self, Arguments&) { return run.list(to_list(run, self)); }

Value join(Run& run, const Value& self, Arguments& arguments) {
  const std::string separator = arguments.given(0) ? str(arguments[0]) : std::string();
  const AttributePath path(arguments[1]);
  std::string out;
  bool at_first = true;
  Cursor cursor(run, self);
  Value item;
  while (cursor.next(item)) {
    const std::size_t before = out.size();
    if (!at_first) out += separator;
    at_first = false;
    append_str(out, path.of(run, item));
    run.charge(out.size() - before);
  }
  return Value(std::move(out));
}

Value reverse(Run& run, const Value& self, Arguments&) {
  if (self.is_string()) return slice_of(run, self, Value(), Value(), Value(-1));
  if (!Cursor::walks(self)) raise("argument must be iterable");
  List items = to_list(run, self);
  std::ranges::reverse(items);
  return self.kind() == Kind::Iterator ? run.list(std::move(items))
                                       : run.iterator(std::move(items));
}

struct Keyed {
  Value key;
  Value item;
};

std::vector<Keyed> keyed(Run& run, const Value& values, const auto& key_of) {
  std::vector<Keyed> pairs;
  Cursor cursor(run, values);
  Value item;
  while (cursor.next(item)) {
    Value key = key_of(item);
    pairs.push_back({.key = std::move(key), .item = std::move(item)});
  }
  return pairs;
}

void sort_pairs(Run& run, std::vector<Keyed>& pairs, bool reversed) {
  // Python sorts backwards by reversing twice around a stable sort; comparing backwards is the same.
  merge_sort(pairs, [&](const Keyed& a, const Keyed& b) {
    run.step();
    return reversed ? compare(Comparison::Less, b.key, a.key)
                    : compare(Comparison::Less, a.key, b.key);
  });
}

List items_of(std::vector<Keyed>& pairs) {
  List items;
  for (Keyed& pair : pairs) items.push_back(std::move(pair.item));
  return items;
}

Value sort(Run& run, const Value& self, Arguments& arguments) {
  const bool case_sensitive = arguments.truth(1, false);
  std::vector<AttributePath> paths;
  if (arguments.given(2) && arguments[2].is_string()) {
    std::string_view rest = arguments[2].as_string();
    while (true) {
      const std::string_view part = rest.substr(0, rest.find(','));
      paths.emplace_back(Value(part));
      if (part.size() == rest.size()) break;
      rest.remove_prefix(part.size() + 1);
    }
  } else {
    paths.emplace_back(arguments[2]);
  }
  auto pairs = keyed(run, self, [&](const Value& item) {
    List keys;
    for (const auto& path : paths) {
      Value key = path.of(run, item);
      keys.push_back(case_sensitive ? std::move(key) : ignore_case(run, key));
    }
    return run.list(std::move(keys));
  });
  sort_pairs(run, pairs, arguments.truth(0, false));
  return run.list(items_of(pairs));
}

Value dict_sort(Run& run, const Value& self, Arguments& arguments) {
  const bool case_sensitive = arguments.truth(0, false);
  const Value by = arguments.given(1) ? arguments[1] : Value("key");
  if (!self.is_dict()) raise("'{}' object has no attribute 'items'", type_name(self));
  const bool by_key = equal(by, Value("key"));
  if (!by_key && !equal(by, Value("value"))) {
    raise("You can only sort by either \"key\" or \"value\"");
  }
  std::vector<Keyed> pairs;
  for (const auto& [key, value] : self.as_dict()) {
    const Value& order = by_key ? key : value;
    pairs.push_back(
        {.key = case_sensitive ? order : ignore_case(run, order), .item = run.tuple({key, value})});
  }
  sort_pairs(run, pairs, arguments.truth(2, false));
  return run.list(items_of(pairs));
}

Value unique(Run& run, const Value& self, Arguments& arguments) {
  const bool case_sensitive = arguments.truth(0, false);
  const AttributePath path(arguments[1]);
  Dict seen;
  List items;
  Cursor cursor(run, self);
  Value item;
  while (cursor.next(item)) {
    Value key = path.of(run, item);
    if (!case_sensitive) key = ignore_case(run, key);
    require_hashable(key);
    if (seen.find(key) != nullptr) continue;
    seen.set(std::move(key), Value(true));
    items.push_back(std::move(item));
  }
  return run.iterator(std::move(items));
}

Value extreme(Run& run, const Value& self, Arguments& arguments, Comparison wanted) {
  const bool case_sensitive = arguments.truth(0, false);
  const AttributePath path(arguments[1]);
  auto pairs = keyed(run, self, [&](const Value& item) {
    Value key = path.of(run, item);
    return case_sensitive ? key : ignore_case(run, key);
  });
  if (pairs.empty()) return Value::missing_because("No aggregated item, sequence was empty.");
  std::size_t best = 0;
  for (std::size_t i = 1; i < pairs.size(); ++i) {
    if (compare(wanted, pairs[i].key, pairs[best].key)) best = i;
  }
  return pairs[best].item;
}

Value min(Run& run, const Value& self, Arguments& arguments) {
  return extreme(run, self, arguments, Comparison::Less);
}

Value max(Run& run, const Value& self, Arguments& arguments) {
  return extreme(run, self, arguments, Comparison::Greater);
}

Value sum(Run& run, const Value& self, Arguments& arguments) {
  const AttributePath path(arguments[0]);
  Value total = arguments.given(1) ? arguments[1] : Value(0);
  if (total.is_string()) raise("sum() can't sum strings [use ''.join(seq) instead]");
  Cursor cursor(run, self);
  Value item;
  while (cursor.next(item)) total = arithmetic(run, Arithmetic::Add, total, path.of(run, item));
  return total;
}

Value group_by(Run& run, const Value& self, Arguments& arguments) {
  const AttributePath path(arguments[0]);
  const Value& fallback = arguments[1];
  const bool case_sensitive = arguments.truth(2, false);
  auto pairs = keyed(run, self, [&](const Value& item) {
    Value key = path.of(run, item, fallback);
    return case_sensitive ? key : ignore_case(run, key);
  });
  sort_pairs(run, pairs, false);
  List groups;
  for (std::size_t begin = 0; begin < pairs.size();) {
    List members;
    std::size_t end = begin;
    while (end < pairs.size() && equal(pairs[end].key, pairs[begin].key)) {
      members.push_back(pairs[end++].item);
    }
    // The group is named by its first member, in the case that has.
    Value name = path.of(run, members.front(), fallback);
    Value group = run.tuple({std::move(name), run.list(std::move(members))});
    object_as<ListObject>(group).group = true;
    groups.push_back(std::move(group));
    begin = end;
  }
  return run.list(std::move(groups));
}

Value batch(Run& run, const Value& self, Arguments& arguments) {
  const std::int64_t size = require_int(arguments[0]);
  List rows;
  List row;
  Cursor cursor(run, self);
  Value item;
  while (cursor.next(item)) {
    if (static_cast<std::int64_t>(row.size()) == size)
      rows.push_back(run.list(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    while (arguments.has(1) && static_cast<std::int64_t>(row.size()) < size) {
      run.charge(sizeof(Value));
      row.push_back(arguments[1]);
    }
    rows.push_back(run.list(std::move(row)));
  }
  return run.iterator(std::move(rows));
}

Value slice(Run& run, const Value& self, Arguments& arguments) {
  const List items = to_list(run, self);
  const std::int64_t count = require_int(arguments[0]);
  if (count == 0) raise("integer division or modulo by zero");
  List columns;
  if (count < 0) return run.iterator({});
  const auto columns_count = static_cast<std::size_t>(count);
  const std::size_t per = items.size() / columns_count;
  const std::size_t longer = items.size() % columns_count;
  std::size_t at = 0;
  for (std::size_t i = 0; i < columns_count; ++i) {
    List column;
    const std::size_t size = per + (i < longer ? 1 : 0);
    for (std::size_t j = 0; j < size; ++j) column.push_back(items[at++]);
    if (arguments.has(1) && i >= longer) column.push_back(arguments[1]);
    run.step();
    columns.push_back(run.list(std::move(column)));
  }
  return run.iterator(std::move(columns));
}

constexpr auto kSequenceFilters = std::to_array<Builtin>({
    {"batch", batch, {"linecount", "?fill_with"}},
    {"count", length, {}},
    {"dictsort", dict_sort, {"?case_sensitive", "?by", "?reverse"}},
    {"first", first, {}},
    {"groupby", group_by, {"attribute", "?default", "?case_sensitive"}},
    {"join", join, {"?d", "?attribute"}},
    {"last", last, {}},
    {"length", length, {}},
    {"list", list, {}},
    {"max", max, {"?case_sensitive", "?attribute"}},
    {"min", min, {"?case_sensitive", "?attribute"}},
    {"reverse", reverse, {}},
    {"slice", slice, {"slices", "?fill_with"}},
    {"sort", sort, {"?reverse", "?case_sensitive", "?attribute"}},
    {"sum", sum, {"?attribute", "?start"}},
    {"unique", unique, {"?case_sensitive", "?attribute"}},
});

}  // namespace

std::span<const Builtin> sequence_filters() { return kSequenceFilters; }

}  // namespace baton::jinja
