// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/objects.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::jinja {

class Run;
struct Builtin;

// Role. The arguments of a call. A builtin first binds them to its parameters; then argument i is
//   parameter i, unset if it was not given.
// Confinement. One call.
class Arguments {
 public:
  using Named = std::pair<Ref<Text>, Value>;
  void add(Value value) { positional_.push_back(std::move(value)); }
  void add_named(Ref<Text> name, Value value);  // raises where the name is there already

  std::vector<Value>& positional() { return positional_; }
  std::vector<Named>& named() { return named_; }
  // Takes the named argument out; unset where there is none.
  Value take_named(std::string_view name);
  void bind(const Builtin& builtin);

  std::size_t size() const { return positional_.size(); }
  const Value& operator[](std::size_t index) const { return positional_[index]; }
  bool given(std::size_t index) const { return !positional_[index].is_unset(); }
  // Given, and not None.
  bool has(std::size_t index) const { return given(index) && !positional_[index].is_none(); }
  std::int64_t integer(std::size_t index, std::int64_t fallback) const;
  bool truth(std::size_t index, bool fallback) const;

 private:
  std::vector<Value> positional_;
  std::vector<Named> named_;
};

// A filter, a test, a method or a global function: one row of a table.
struct Builtin {
  std::string_view name;
  Value (*call)(Run& run, const Value& self, Arguments& arguments);
  // In order; those with a `?` may be left out. A single `*` takes whatever comes.
  std::array<std::string_view, 6> parameters = {};

  Value operator()(Run& run, const Value& self, Arguments& arguments) const {
    arguments.bind(*this);
    return call(run, self, arguments);
  }
};

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_text_method(std::string_view name);
const Builtin* find_list_method(std::string_view name);
const Builtin* find_tuple_method(std::string_view name);
const Builtin* find_dict_method(std::string_view name);
const Value* find_global(std::string_view name);
// Whether Jinja has a global of this name that Baton has not.
bool is_missing_global(std::string_view name);

// The tables that find_filter looks through.
std::span<const Builtin> text_filters();
std::span<const Builtin> sequence_filters();
std::span<const Builtin> selection_filters();
std::span<const Builtin> value_filters();
std::span<const Builtin> text_methods();

// A method of this object, or a global, as a value.
struct BoundBuiltin final : FunctionObject {
  BoundBuiltin(const Builtin& what, Value of)
      : FunctionObject(static_cast<std::uint32_t>(of.nesting() + 1)),
        builtin(what),
        self(std::move(of)) {}
  Value call(Run& run, Arguments& arguments) const override {
    return builtin(run, self, arguments);
  }
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  std::string repr() const override {
    return "<built-in method " + std::string(builtin.name) + ">";
  }
  const Builtin& builtin;
  const Value self;
};

}  // namespace baton::jinja
