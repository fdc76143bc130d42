// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/builtins.h"

namespace baton::jinja {

// Methods of Jinja's own objects: loop, cycler(), joiner(), macros.
const Builtin* find_loop_method(std::string_view name);
const Builtin* find_cycler_method(std::string_view name);
Value function_attribute(const Value& function, std::string_view name);
Value call_joiner(const Value& joiner, Arguments& arguments);
Value call_loop(Run& run, const Value& loop, Arguments& arguments);

}  // namespace baton::jinja
