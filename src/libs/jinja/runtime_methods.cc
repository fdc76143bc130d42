// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/runtime_methods.h"

#include "libs/jinja/failure.h"
#include "libs/jinja/loop.h"
#include "libs/jinja/run.h"
#include "libs/jinja/statements.h"

#include <algorithm>
#include <array>

namespace baton::jinja {
namespace {

Value loop_cycle(Run&, const Value& self, Arguments& arguments) {
  return object_as<LoopObject>(self).cycle(arguments.positional());
}

Value loop_changed(Run& run, const Value& self, Arguments& arguments) {
  return Value(object_as<LoopObject>(self).changed(run, std::move(arguments.positional())));
}

Value cycler_next(Run&, const Value& self, Arguments&) {
  auto& cycler = object_as<CyclerObject>(self);
  Value value = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return value;
}

Value cycler_reset(Run&, const Value& self, Arguments&) {
  object_as<CyclerObject>(self).position = 0;
  return Value::none();
}

constexpr std::array<Builtin, 2> kLoopMethods = {{
    {"cycle", loop_cycle, {"*"}},
    {"changed", loop_changed, {"*"}},
}};

constexpr std::array<Builtin, 2> kCyclerMethods = {{
    {"next", cycler_next, {}},
    {"reset", cycler_reset, {}},
}};

template <std::size_t Size>
const Builtin* find(const std::array<Builtin, Size>& table, std::string_view name) {
  const auto* at = std::ranges::find(table, name, &Builtin::name);
  return at != table.end() ? at : nullptr;
}

}  // namespace

const Builtin* find_loop_method(std::string_view name) { return find(kLoopMethods, name); }
const Builtin* find_cycler_method(std::string_view name) { return find(kCyclerMethods, name); }

Value function_attribute(const Value& function, std::string_view name) {
  const auto* macro = dynamic_cast<const MacroObject*>(function.object());
  if (macro == nullptr) return Value();
  if (name == "name") return Value(macro->macro.name);
  if (name == "catch_kwargs") return Value(macro->macro.named_rest.has_value());
  if (name == "catch_varargs") return Value(macro->macro.positional_rest.has_value());
  if (name == "caller") return Value(macro->macro.caller.has_value());
  if (name == "arguments") {
    List names;
    for (const auto& parameter : macro->macro.parameters) names.emplace_back(parameter.name);
    return Value::tuple(std::move(names));
  }
  return Value();
}

Value call_joiner(const Value& joiner, Arguments& arguments) {
  if (arguments.size() != 0 || !arguments.named().empty()) raise("joiner() takes no arguments");
  auto& object = object_as<JoinerObject>(joiner);
  return std::exchange(object.used, true) ? object.separator : Value("");
}

Value call_loop(Run& run, const Value& loop, Arguments& arguments) {
  const auto& object = object_as<LoopObject>(loop);
  if (!object.statement().recursive) {
    raise("The loop must have the 'recursive' marker to be called recursively.");
  }
  if (arguments.size() != 1 || !arguments.named().empty()) raise("loop() takes one argument");
  return object.statement().recurse(run, arguments[0], object.depth0() + 1, object.around());
}

}  // namespace baton::jinja
