// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace baton::jinja {

class Run;

enum class Comparison : std::uint8_t { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };
enum class Arithmetic : std::uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Modulo,
  Power,
};

// Python's rules. An operation that Python refuses raises a Failure in its words.
bool truthy(const Value& value);
bool equal(const Value& a, const Value& b);
bool compare(Comparison how, const Value& a, const Value& b);
bool contains(Run& run, const Value& container, const Value& item);
std::size_t hash_value(const Value& value);
std::size_t hash_text(std::string_view text);
void require_hashable(const Value& value);
std::optional<std::size_t> length_of(const Value& value);

Value arithmetic(Run& run, Arithmetic how, const Value& a, const Value& b);
Value negated(const Value& value);
Value positive(const Value& value);

bool is_number(const Value& value);    // Bool, Int or Float
bool is_int_like(const Value& value);  // Bool or Int
double number_as_float(const Value& value);
// An index, a width or a count. Requires nothing: raises where it is no integer.
std::int64_t require_int(const Value& value);
std::string_view require_text(const Value& value);

// a + b of two strings, where markup escapes what is none.
Value concatenated(Run& run, const Value& a, const Value& b);
Value repeated(Run& run, const Value& sequence, std::int64_t times);

}  // namespace baton::jinja
