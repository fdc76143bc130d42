// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "wire/http_message.h"

#include <algorithm>
#include <charconv>

namespace baton::wire {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

bool less_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::lexicographical_compare(
      a, b, [](char left, char right) { return lower(left) < lower(right); });
}

void Headers::add(std::string_view name, std::string_view value) {
  spans_.push_back({static_cast<std::uint32_t>(text_.size()),
                    static_cast<std::uint32_t>(name.size()),
                    static_cast<std::uint32_t>(value.size())});
  text_.append(name).append(value);
}

void Headers::remove(std::string_view name) {
  std::erase_if(spans_, [&](const Span& span) { return is_named(span, name); });
}

void Headers::clear() {
  text_.clear();
  spans_.clear();
}

void Headers::reserve(std::size_t fields, std::size_t bytes) {
  spans_.reserve(fields);
  text_.reserve(bytes);
}

// Most names differ in size already; then their text is not looked at.
bool Headers::is_named(const Span& span, std::string_view name) const {
  return span.name_size == name.size() &&
         equal_ignoring_case({text_.data() + span.name, span.name_size}, name);
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (is_named(spans_[i], name)) return (*this)[i].value;
  }
  return std::nullopt;
}

template <class Visit>
bool Headers::any_token(std::string_view name, Visit visit) const {
  for (std::size_t i = 0; i < size(); ++i) {
    if (!is_named(spans_[i], name)) continue;
    std::string_view rest = (*this)[i].value;
    while (true) {
      const auto comma = rest.find(',');
      if (visit(trimmed(rest.substr(0, comma)))) return true;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return false;
}

bool Headers::has_token(std::string_view name, std::string_view token) const {
  return any_token(name, [token](std::string_view one) { return equal_ignoring_case(one, token); });
}

std::vector<std::string_view> Headers::tokens(std::string_view name) const {
  std::vector<std::string_view> all;
  any_token(name, [&all](std::string_view one) {
    all.push_back(one);
    return false;
  });
  return all;
}

Headers::Field Headers::operator[](std::size_t i) const {
  const Span& span = spans_[i];
  const std::string_view text = text_;
  return {text.substr(span.name, span.name_size),
          text.substr(span.name + span.name_size, span.value_size)};
}

std::string_view RequestHead::path() const {
  return std::string_view(target).substr(0, target.find('?'));
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace baton::wire
