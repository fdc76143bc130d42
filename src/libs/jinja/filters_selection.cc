// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/attribute_path.h"
#include "libs/jinja/builtins.h"
#include "libs/jinja/cursor.h"
#include "libs/jinja/failure.h"
#include "libs/jinja/operators.h"
#include "libs/jinja/printing.h"
#include "libs/jinja/run.h"

#include <array>

namespace baton::jinja {
namespace {

// The arguments behind those that name the filter or the test, as it will get them each time.
Arguments remaining(Arguments& arguments, std::size_t from) {
  Arguments rest;
  for (std::size_t i = from; i < arguments.size(); ++i) rest.add(arguments[i]);
  for (const auto& [name, value] : arguments.named()) rest.add_named(name, value);
  return rest;
}

Value map(Run& run, const Value& self, Arguments& arguments) {
  List results;
  if (!truthy(self)) return run.iterator(std::move(results));
  Value item;
  if (arguments.size() == 0) {
    const Value attribute = arguments.take_named("attribute");
    if (attribute.is_unset()) raise("map requires a filter argument");
    const Value fallback = arguments.take_named("default");
    if (!arguments.named().empty()) {
      raise("Unexpected keyword argument {}", in_quotes(arguments.named().front().first->view()));
    }
    const AttributePath path(attribute);
    Cursor cursor(run, self);
    while (cursor.next(item)) results.push_back(path.of(run, item, fallback));
    return run.iterator(std::move(results));
  }
  const std::string name = str(arguments[0]);
  const Builtin* filter = find_filter(name);
  if (filter == nullptr) raise("No filter named {}.", in_quotes(name));
  Cursor cursor(run, self);
  while (cursor.next(item)) {
    Arguments each = remaining(arguments, 1);
    results.push_back((*filter)(run, item, each));
  }
  return run.iterator(std::move(results));
}

enum class Keep { Passing, Failing };
enum class Ask { Item, Attribute };

Value choose(Run& run, const Value& self, Arguments& arguments, Keep keep, Ask ask) {
  List chosen;
  if (!truthy(self)) return run.iterator(std::move(chosen));
  const std::size_t names = ask == Ask::Attribute ? 1 : 0;
  if (arguments.size() < names) raise("Missing parameter for attribute name");
  const AttributePath path(ask == Ask::Attribute ? arguments[0] : Value());
  const Builtin* test = nullptr;
  if (arguments.size() > names) {
    const std::string name = str(arguments[names]);
    test = find_test(name);
    if (test == nullptr) raise("No test named {}.", in_quotes(name));
  }
  Cursor cursor(run, self);
  Value item;
  while (cursor.next(item)) {
    const Value subject = path.of(run, item);
    bool passes = false;
    if (test == nullptr) {
      passes = truthy(subject);
    } else {
      Arguments each = remaining(arguments, names + 1);
      passes = truthy((*test)(run, subject, each));
    }
    if (passes == (keep == Keep::Passing)) chosen.push_back(item);
  }
  return run.iterator(std::move(chosen));
}

Value select(Run& run, const Value& self, Arguments& arguments) {
  return choose(run, self, arguments, Keep::Passing, Ask::Item);
}
Value reject(Run& run, const Value& self, Arguments& arguments) {
  return choose(run, self, arguments, Keep::Failing, Ask::Item);
}
Value select_attr(Run& run, const Value& self, Arguments& arguments) {
  return choose(run, self, arguments, Keep::Passing, Ask::Attribute);
}
Value reject_attr(Run& run, const Value& self, Arguments& arguments) {
  return choose(run, self, arguments, Keep::Failing, Ask::Attribute);
}

constexpr auto kSelectionFilters = std::to_array<Builtin>({
    {"map", map, {"*"}},
    {"reject", reject, {"*"}},
    {"rejectattr", reject_attr, {"*"}},
    {"select", select, {"*"}},
    {"selectattr", select_attr, {"*"}},
});

}  // namespace

std::span<const Builtin> selection_filters() { return kSelectionFilters; }

}  // namespace baton::jinja
