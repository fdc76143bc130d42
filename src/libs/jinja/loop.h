// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/cursor.h"
#include "libs/jinja/objects.h"
#include "libs/jinja/run.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::jinja {

struct ForStatement;

// Role. A running loop: the `loop` of templates. It looks ahead only for members that need it,
//   because the loop's condition may depend on effects of its body.
// Confinement. One rendering.
class LoopObject final : public Object {
 public:
  LoopObject(Run& run, const ForStatement& statement, Value over, std::int64_t depth0);

  bool advance();  // to the next item; false at the end
  const Value& current() const { return current_; }
  std::int64_t index0() const { return index0_; }
  std::int64_t depth0() const { return depth0_; }
  const ForStatement& statement() const { return statement_; }
  // The variables around a recursive loop.
  Ref<Activation> around() const;
  // The loop ended; what still holds it sees no further items. Nor does it hold any: loops over
  // loops would make a chain whose end takes too deep a stack, or a ring without end.
  void finish();

  // index, first, last and so on; unset where there is no such attribute.
  Value attribute(std::string_view name);
  Value cycle(const List& items) const;
  bool changed(Run& run, List values);
  std::string repr();

 private:
  bool pull(Value& item);
  bool peek();
  std::int64_t length();

  Run& run_;
  const ForStatement& statement_;
  Activation* home_;  // whose variables the loop's condition reads
  Value over_;
  Cursor cursor_;
  std::int64_t depth0_;
  std::int64_t index0_ = -1;
  Value before_;
  Value current_;
  std::optional<Value> after_;
  List ahead_;  // items fetched to be counted, last first
  std::optional<std::int64_t> length_;
  std::optional<Value> last_changed_;
};

}  // namespace baton::jinja
