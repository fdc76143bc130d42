// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <string_view>

namespace baton::jinja {

class Run;
class Arguments;

// Look-ups as the sandboxed environment does them. A missing item is undefined; only looking into
// something undefined raises. The result is `scratch` or lives as long as the object.
const Value& find_item(Run& run, const Value& object, const Value& key, Value& scratch);
const Value& find_attribute(Run& run, const Value& object, const Value& name, Value& scratch);
// An attribute only, without falling back to items; unset where there is none.
Value own_attribute(Run& run, const Value& object, const Value& name);
// object[start:stop:step], where unset or None means left out.
Value slice_of(Run& run, const Value& object, const Value& start, const Value& stop,
               const Value& step);
Value call_value(Run& run, const Value& callee, Arguments& arguments);

// Whether a dict has an attribute of this name, which hides the item.
bool has_dict_attribute(std::string_view name);

}  // namespace baton::jinja
