// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/text/known_members.h"

#include <simdjson.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace baton::tokenizer {

// Role. One object of a tokenizer's file, read member by member. Its errors name the object, the
//   member and what was expected.
// Confinement. One thread. Lifetime. The parsed file must outlive it.
class JsonSection {
 public:
  // `name` as it goes into messages: `model`, `added_tokens[3]`.
  static Result<JsonSection> of(simdjson::dom::element json, std::string name);

  const std::string& name() const { return name_; }
  simdjson::dom::object object() const { return object_; }

  // Null and absent are the same, as they are to the library.
  std::optional<simdjson::dom::element> find(std::string_view key) const;
  Result<bool> flag(std::string_view key, bool otherwise) const;
  Result<std::optional<std::string_view>> find_text(std::string_view key) const;
  Result<std::string_view> text(std::string_view key) const;
  Result<std::uint32_t> number(std::string_view key) const;
  Result<simdjson::dom::array> array(std::string_view key) const;
  Result<JsonSection> section(std::string_view key) const;
  // An error that names the first member that is none of these.
  Result<void> only(std::initializer_list<std::string_view> keys) const;
  // The same for the members that a table gives to the type.
  Result<void> only(std::string_view type, std::span<const KnownMembers> table) const;

  // "the model: MESSAGE".
  std::unexpected<Error> wrong(std::string_view message) const;

 private:
  JsonSection(simdjson::dom::object object, std::string name)
      : object_(object), name_(std::move(name)) {}
  std::unexpected<Error> expected(std::string_view key, std::string_view what) const;

  simdjson::dom::object object_;
  std::string name_;
};

}  // namespace baton::tokenizer
