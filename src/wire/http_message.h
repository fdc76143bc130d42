// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::wire {

// Header fields in the order they came. Names compare without regard to case.
class Headers {
 public:
  struct Field {
    std::string_view name;
    std::string_view value;
  };

  void add(std::string_view name, std::string_view value);
  void remove(std::string_view name);
  void clear();
  void reserve(std::size_t fields, std::size_t bytes);

  // The first field of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  // True where a comma-separated list field (Connection, Transfer-Encoding …) holds `token`, in any
  // of its fields.
  bool has_token(std::string_view name, std::string_view token) const;
  // All that such a list holds, as long as the headers stay.
  std::vector<std::string_view> tokens(std::string_view name) const;

  std::size_t size() const { return spans_.size(); }
  bool empty() const { return spans_.empty(); }
  // Size of all names and values together.
  std::size_t bytes() const { return text_.size(); }
  Field operator[](std::size_t i) const;

 private:
  struct Span {
    std::uint32_t name;  // offset into text_; the value follows the name
    std::uint32_t name_size;
    std::uint32_t value_size;
  };
  bool is_named(const Span& span, std::string_view name) const;
  // Calls `visit` with each, until it returns true; whether it did.
  template <class Visit>
  bool any_token(std::string_view name, Visit visit) const;

  std::string text_;
  std::vector<Span> spans_;
};

bool equal_ignoring_case(std::string_view a, std::string_view b);
bool less_ignoring_case(std::string_view a, std::string_view b);

// A part of a path with its %XX decoded; malformed ones stay.
std::string percent_decoded(std::string_view text);

struct RequestHead {
  std::string method;
  std::string target;  // as sent: path and query
  int minor_version = 1;
  Headers headers;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
  bool expect_continue = false;

  std::string_view path() const;  // target up to '?'
};

struct ResponseHead {
  int status = 0;
  int minor_version = 1;
  Headers headers;
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool keep_alive = true;
};

}  // namespace baton::wire
