// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/attribute_path.h"

#include "libs/jinja/lookup.h"
#include "libs/jinja/run.h"
#include "libs/jinja/unicode.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace baton::jinja {

AttributePath::AttributePath(const Value& attribute) {
  if (attribute.is_unset() || attribute.is_none()) return;
  if (!attribute.is_string()) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.as_string();
  while (true) {
    const std::string_view part = rest.substr(0, rest.find('.'));
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool number = error == std::errc() && end == part.data() + part.size() && part[0] != '-';
    parts_.push_back(number ? Value(index) : Value(part));
    if (part.size() == rest.size()) return;
    rest.remove_prefix(part.size() + 1);
  }
}

Value AttributePath::of(Run& run, const Value& item, const Value& fallback) const {
  Value value = item;
  for (const Value& part : parts_) {
    Value scratch;
    Value found = find_item(run, value, part, scratch);
    value = std::move(found);
    if (value.is_undefined() && !fallback.is_unset() && !fallback.is_none()) value = fallback;
  }
  return value;
}

Value ignore_case(Run& run, const Value& value) {
  return value.is_string() ? run.text(to_lower(value.as_string())) : value;
}

}  // namespace baton::jinja
