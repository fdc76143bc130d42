// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <cstddef>
#include <cstdint>

namespace baton::jinja {

class Run;

// Role. Iterates over any value that is iterable in Python.
// Confinement. One rendering.
class Cursor {
 public:
  static bool walks(const Value& value);
  // Raises where the value cannot be walked.
  Cursor(Run& run, Value over);
  // False at the end.
  bool next(Value& item);
  // Lets go of what it walks over. Requires: no further next().
  void release() { over_ = Value(); }

 private:
  Run& run_;
  Value over_;
  std::size_t position_ = 0;
};

List to_list(Run& run, const Value& iterable);

}  // namespace baton::jinja
