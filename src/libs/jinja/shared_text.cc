// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/jinja/shared_text.h"

#include "libs/jinja/unicode.h"

namespace baton::jinja {
namespace {

// Shorter pieces are copied, so that they do not keep a long text alive.
constexpr std::size_t kWorthSharing = 64;

}  // namespace

std::size_t Text::length() const {
  std::size_t length = length_.load(std::memory_order_relaxed);
  if (length == kUncounted) {
    length = count_code_points(view_);
    length_.store(length, std::memory_order_relaxed);
  }
  return length;
}

std::size_t Text::offset(std::size_t index) const {
  if (index >= length()) return view_.size();
  return ascii() ? index : code_point_offset(view_, index);
}

Ref<Text> Text::piece(std::size_t begin, std::size_t size) const {
  const std::string_view part = view_.substr(begin, size);
  if (part.size() < kWorthSharing) return make<Text>(std::string(part));
  return make<Text>(owner_ ? owner_ : Ref<const Object>::share(this), part);
}

}  // namespace baton::jinja
