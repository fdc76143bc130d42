// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <vector>

namespace baton::jinja {

class Run;

// Role. The path in a filter's `attribute=`: "a.b.0" goes into attributes, items and positions.
// Confinement. One call of a filter.
class AttributePath {
 public:
  // Unset or None leads nowhere: to the item itself.
  explicit AttributePath(const Value& attribute);
  // `fallback` stands for what is undefined on the way, unless it is unset or None.
  Value of(Run& run, const Value& item, const Value& fallback = Value()) const;

 private:
  std::vector<Value> parts_;
};

// The text in lower case, so that sorting does not depend on it; anything else as it is.
Value ignore_case(Run& run, const Value& value);

}  // namespace baton::jinja
